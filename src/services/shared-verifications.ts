/**
 * Log verifications that callers share. Each one reads the whole log, so a server runs one at a time, however
 * many callers wait.
 */
import type { RunExclusively } from "../calls/caller-mutex.ts";
import { raceSignal } from "../calls/interrupt.ts";

export interface WaitOptions {
  readonly signal: AbortSignal;
  /** Called from time to time with the number of checked entries and the total. */
  readonly onProgress?: (checked: number, total: number) => void;
}

export interface SharedVerifications<Result> {
  /**
   * Waits for a verification that begins after the call, so that it covers everything the caller has seen
   * before. The verification ends early once nobody waits for it.
   *
   * @throws the abort reason of the signal
   */
  wait(options: WaitOptions): Promise<Result>;
}

/** A pending or running verification and its waiting callers. */
interface Run<Result> {
  readonly result: Promise<Result>;
  readonly waiting: Set<WaitOptions>;
  readonly nobody: AbortController;
}

/**
 * Lets callers share the runs of `verify`.
 *
 * @param runExclusively the mutex that the server's other verifications also use
 */
export function shareVerifications<Result>(
  runExclusively: RunExclusively,
  verify: (options: Required<WaitOptions>) => Promise<Result>,
): SharedVerifications<Result> {
  let next: Run<Result> | undefined;
  const schedule = (): Run<Result> => {
    const waiting = new Set<WaitOptions>();
    const nobody = new AbortController();
    const result = runExclusively("", nobody.signal, () => {
      if (next?.nobody === nobody) next = undefined;
      return verify({
        signal: nobody.signal,
        onProgress(checked, total) {
          for (const { onProgress } of waiting) onProgress?.(checked, total);
        },
      });
    });
    // Every waiting caller gets the error; without callers, nobody handles it.
    result.catch(() => {});
    return { result, waiting, nobody };
  };
  return {
    async wait(options) {
      const { signal } = options;
      signal.throwIfAborted();
      next ??= schedule();
      const { result, waiting, nobody } = next;
      waiting.add(options);
      try {
        return await raceSignal(result, signal);
      } finally {
        waiting.delete(options);
        if (waiting.size === 0) {
          if (next?.nobody === nobody) next = undefined;
          nobody.abort();
        }
      }
    },
  };
}
