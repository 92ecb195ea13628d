/** A mutex per caller. */

/**
 * Runs work after all earlier work of the same caller. Other callers' work does not wait.
 *
 * @throws the abort reason of the signal, if the call ended while waiting
 */
export type RunExclusively = <T>(caller: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

/** Creates the mutexes of all callers. */
export function createCallerMutex(): RunExclusively {
  const last = new Map<string, Promise<unknown>>();
  return async (caller, signal, work) => {
    const before = last.get(caller);
    const turn = (async () => {
      await before?.catch(() => {}); // Reported to its own caller.
      signal.throwIfAborted();
      return work();
    })();
    last.set(caller, turn);
    try {
      return await turn;
    } finally {
      if (last.get(caller) === turn) last.delete(caller);
    }
  };
}
