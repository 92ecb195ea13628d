/** Does work at an interval. */
import { type Background, reportAttempts } from "./background.ts";

/** What to do at an interval, and who hears of its failures. */
export interface PollInput {
  /** Names the work in metrics and log lines. */
  readonly work: string;
  readonly everyMs: number;
  /** Whether the first call is at once, not after an interval. */
  readonly startsAtOnce?: boolean;
  readonly background: Pick<Background, "started" | "failed">;
}

/**
 * Calls a function at an interval, one call at a time. A failed call does not stop it: the next one may succeed when
 * the store can be read again.
 *
 * @returns a function that stops it, and waits for the call in progress
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
    running = undefined;
  };
  const start = (): void => {
    running ??= run();
  };
  if (startsAtOnce) start();
  const timer = setInterval(start, everyMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
