/** Does work at an interval. */
import type { Background } from "./background.ts";

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
 * the store can be read again. Each failure is counted. Of many in a row, the first, second, fourth, eighth and so on are
 * logged.
 *
 * @returns a function that stops it, and waits for the call in progress
 */
export function poll(
  { work, everyMs, startsAtOnce = false, background }: PollInput,
  check: () => Promise<void>,
): () => Promise<void> {
  background.started(work);
  let running: Promise<void> | undefined;
  let failures = 0;
  const run = async (): Promise<void> => {
    try {
      await check();
      failures = 0;
    } catch (error) {
      failures += 1;
      background.failed({ work, error, isRepeated: !isPowerOfTwo(failures) });
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

function isPowerOfTwo(number: number): boolean {
  return Number.isInteger(Math.log2(number));
}
