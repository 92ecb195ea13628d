/** A mutex for each caller. */

/**
 * Runs work after all earlier work of the same caller. Work of other callers does not wait.
 *
 * @throws the reason of the signal, for a call that ended before its turn
 */
export type RunExclusively = <T>(caller: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

/** Creates the mutexes of all callers. */
export function createCallerMutex(): RunExclusively {
  const last = new Map<string, Promise<unknown>>();
  return async (caller, signal, work) => {
    const before = last.get(caller);
    const turn = (async () => {
      await before?.catch(() => {}); // Its own caller is told.
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
