/** Breaks off waiting. */

/** Lets the wait for a promise end early, for a reason that comes from elsewhere. */
export interface Interrupt {
  /** Ends the present wait and every later one with a reason; the first reason counts. */
  interrupt(reason: unknown): void;
  /** Waits for a promise, or for the interruption. One wait at a time. */
  race<T>(promise: Promise<T>): Promise<T>;
}

/**
 * Makes one. Unlike Promise.race against one long-lived promise, which keeps something of every round until
 * that promise ends, it keeps nothing: a stream of a million messages costs no memory.
 */
export function createInterrupt(): Interrupt {
  let interruption: { readonly reason: unknown } | undefined;
  let endWait: ((reason: unknown) => void) | undefined;
  return {
    interrupt(reason) {
      interruption ??= { reason };
      endWait?.(interruption.reason);
    },
    race: (promise) =>
      new Promise((resolve, reject) => {
        endWait = reject;
        promise.then(resolve, reject);
        if (interruption !== undefined) reject(interruption.reason);
      }),
  };
}

/** Waits for a promise, or for the end of a call: whoever does not look at its signal does not hold it back. */
export function raceSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { race, interrupt } = createInterrupt();
  const onAbort = (): void => interrupt(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  return race(promise).finally(() => signal.removeEventListener("abort", onAbort));
}
