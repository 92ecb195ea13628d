/**
 * A button below a diagram that runs the story's next step, so that the reader can watch the diagram grow.
 */
import type { Act } from "./sequence.ts";

interface NextStepProps {
  readonly acts: readonly Pick<Act, "title" | "status" | "start">[];
  /** The next step; undefined after the last. */
  readonly next: number | undefined;
  /** Called when the reader presses the button. */
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
