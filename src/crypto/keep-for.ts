/**
 * Shares the result of a slow computation: all calls during it, and for some time after it, get the same result or
 * failure.
 *
 * @param keepMs milliseconds for which a finished result is reused.
 */
export function keepFor<T>(
  keepMs: number,
  compute: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let kept: Promise<T> | undefined;
  let endedMs: number | undefined;
  return () => {
    if (kept !== undefined && (endedMs === undefined || now() - endedMs < keepMs)) return kept;
    endedMs = undefined;
    const computing = compute().finally(() => {
      endedMs = now();
    });
    kept = computing;
    return computing;
  };
}
