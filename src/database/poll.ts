/** Runs work at an interval. */
import { type Background, reportAttempts } from "./background.ts";

export interface PollInput {
  /** Name of the work in metrics and log lines. */
  readonly work: string;
  readonly everyMs: number;
  /** Whether to run at once instead of after the first interval. */
  readonly startsAtOnce?: boolean;
  readonly background: Pick<Background, "started" | "failed">;
}

/**
 * Calls a function at an interval, one call at a time. A failed call does not stop polling: the next one may
 * succeed once the store is readable again.
 *
 * @returns a function that stops polling and waits for the call in progress
 */
export function poll(
  { work, everyMs, startsAtOnce = false, background }: PollInput,
  check: () => Promise<void>,
): () => Promise<void> {
  const attempts = reportAttempts(background, { work });
  let running: Promise<void> | undefined;
  const run = async (): Promise<void> => {
    try {
      await check();
      attempts.succeeded();
    } catch (error) {
      attempts.failed(error);
    }
  };
  const start = (): void => {
    running ??= run().finally(() => {
      running = undefined;
    });
  };
  if (startsAtOnce) start();
  const timer = setInterval(start, everyMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
