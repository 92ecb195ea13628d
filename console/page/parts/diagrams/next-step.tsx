/** A button below a diagram that does the next step of the story, so that a reader can watch it grow. */
import type { Act } from "./sequence.ts";

interface NextStepProps {
  readonly acts: readonly Pick<Act, "title" | "status" | "start">[];
  /** The step that comes next; undefined after the last. */
  readonly next: number | undefined;
  /** Is told when the reader presses the button. */
  readonly onStart?: () => void;
}

export function NextStep({ acts, next, onStart }: NextStepProps) {
  const at = next ?? 0;
  const act = acts[at];
  if (act === undefined) return null;
  const isBusy = acts.some(({ status }) => status === "running");
  return (
    <p class="next-step">
      <button
        type="button"
        aria-disabled={isBusy}
        onClick={() => {
          if (isBusy) return;
          onStart?.();
          void act.start();
        }}
      >
        {next === undefined ? "Start again" : `Step ${at + 1} of ${acts.length}: ${act.title}`}
      </button>
    </p>
  );
}
