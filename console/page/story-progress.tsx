/** The bar at the window's edge: the reader's progress through a story, and its next step at hand. */
import { useEffect, useRef, useState } from "preact/hooks";
import { scrollToStep } from "./step.tsx";
import type { Step, StoryState } from "./story-step.ts";

/** Milliseconds between two steps when the story plays by itself. */
const pauseMs = 900;

interface StoryProgressProps<S> {
  readonly steps: readonly Step<unknown, S>[];
  readonly story: StoryState<S>;
}

export function StoryProgress<S>({ steps, story }: StoryProgressProps<S>) {
  const left = steps.filter((step) => story.at(step).status !== "done" && story.endOf(step) === undefined);
  const [next] = left;
  const isBusy = left.some((step) => story.at(step).status === "running");
  const [isPlaying, setPlaying] = useState(false);
  const mayGoOn = useRef(false);
  const setPlay = (goOn: boolean): void => {
    mayGoOn.current = goOn;
    setPlaying(goOn);
  };
  useEffect(() => () => setPlay(false), []);

  const start = async (step: Step<unknown, S>): Promise<boolean> => {
    const running = story.start(step);
    for (const wait of [Promise.resolve(), running]) {
      await wait;
      // It unfolds, and later shows its result, with the next frame.
      requestAnimationFrame(() => void scrollToStep(step.title));
    }
    return running;
  };
  const play = async (): Promise<void> => {
    setPlay(true);
    for (const step of left) {
      const isDone = await start(step);
      if (isDone && mayGoOn.current) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      if (!isDone || !mayGoOn.current) break;
    }
    setPlay(false);
  };

  return (
    <section class="story-progress" aria-label="Progress">
      <progress value={steps.length - left.length} max={steps.length} aria-label="Steps done" />
      <span class="hint">
        {steps.length - left.length} of {steps.length}
      </span>
      {next && (
        <>
          <button
            type="button"
            class="next"
            aria-disabled={isBusy || isPlaying}
            onClick={() => {
              if (!isBusy && !isPlaying) void start(next);
            }}
          >
            Next: {next.title}
          </button>
          <button
            type="button"
            aria-disabled={isBusy && !isPlaying}
            onClick={() => {
              if (isPlaying) setPlay(false);
              else if (!isBusy) void play();
            }}
          >
            {isPlaying ? "Stop" : "Run all"}
          </button>
        </>
      )}
    </section>
  );
}
