/** Ends the wait for a promise early, for an outside reason. */
export interface Interrupt {
  /** Ends the current wait and every later one with a reason. Only the first reason counts. */
  interrupt(reason: unknown): void;
  /** Waits for a promise or the interruption. Only one wait at a time. */
  race<T>(promise: Promise<T>): Promise<T>;
}

/**
 * Creates an interrupt. Promise.race against a long-lived promise would retain memory for every round until
 * that promise settles. An interrupt retains nothing, so a stream of a million messages costs no memory.
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

/** Waits for a promise or the end of a call. Code that ignores its signal cannot delay the end. */
export function raceSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { race, interrupt } = createInterrupt();
  const onAbort = (): void => interrupt(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  return race(promise).finally(() => signal.removeEventListener("abort", onAbort));
}
