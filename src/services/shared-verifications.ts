/** Verifications that callers share: each reads the log, so a server runs one at a time, however many ask. */

/** Who waits for a verification. */
export interface WaitOptions {
  readonly signal: AbortSignal;
  /** Receives the number of checked entries and the total from time to time. */
  readonly onProgress?: (checked: number, total: number) => void;
}

/** Runs verifications of a log. */
export interface SharedVerifications<Result> {
  /**
   * Waits for a verification that begins after the call, so that it covers all that the caller has seen before. It ends
   * early if nobody waits for it any more.
   *
   * @throws the reason of the signal
   */
  wait(options: WaitOptions): Promise<Result>;
}

/** A verification that has not begun, or runs, and those who wait for it. */
interface Run<Result> {
  readonly result: Promise<Result>;
  readonly waiting: Set<WaitOptions>;
  readonly nobody: AbortController;
}

/** Runs work one at a time. */
export type OneAtATime = <Result>(work: () => Promise<Result>) => Promise<Result>;

/** Creates a line in which work of several kinds waits. */
export function createLine(): OneAtATime {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work);
    // Its own callers are told.
    last = turn.catch(() => {});
    return turn;
  };
}

/** @param line is shared with other verifications of the server */
export function shareVerifications<Result>(
  line: OneAtATime,
  verify: (options: Required<WaitOptions>) => Promise<Result>,
): SharedVerifications<Result> {
  let next: Run<Result> | undefined;
  const schedule = (): Run<Result> => {
    const waiting = new Set<WaitOptions>();
    const nobody = new AbortController();
    const result = line(() => {
      if (next?.nobody === nobody) next = undefined;
      nobody.signal.throwIfAborted();
      return verify({
        signal: nobody.signal,
        onProgress(checked, total) {
          for (const { onProgress } of waiting) onProgress?.(checked, total);
        },
      });
    });
    // Everybody who waits is told; there may be nobody.
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
      const left = Promise.withResolvers<never>();
      const leave = (): void => left.reject(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      try {
        return await Promise.race([result, left.promise]);
      } finally {
        signal.removeEventListener("abort", leave);
        waiting.delete(options);
        if (waiting.size === 0) {
          if (next?.nobody === nobody) next = undefined;
          nobody.abort();
        }
      }
    },
  };
}
