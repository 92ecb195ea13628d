/**
 * Calls a function at an interval, one call at a time. A failed call does not stop it: the next one may succeed when
 * the store can be read again.
 *
 * @returns a function that stops it
 */
export function poll(everyMs: number, check: () => Promise<void>): () => void {
  let isLooking = false;
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    check()
      .catch(() => {})
      .finally(() => {
        isLooking = false;
      });
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}
