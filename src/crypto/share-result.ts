/**
 * Shares the result of a slow computation: all calls during it, and for some time afterwards, get the same
 * result or failure.
 *
 * @param reuseMs milliseconds to reuse a finished result
 */
export function shareResult<T>(
  reuseMs: number,
  compute: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let shared: Promise<T> | undefined;
  let endedMs: number | undefined;
  return () => {
    if (shared !== undefined && (endedMs === undefined || now() - endedMs < reuseMs)) return shared;
    endedMs = undefined;
    const computing = compute().finally(() => {
      endedMs = now();
    });
    shared = computing;
    return computing;
  };
}
