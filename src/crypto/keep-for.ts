/**
 * Shares what takes long to compute: all that ask while it is computed, and for some time after, get the same result,
 * also a failure.
 *
 * @param keepMs milliseconds after its end for which a result is given again.
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
