/**
 * Looks at something again and again, one look after another. A look that fails is followed by the next: a store that
 * cannot be read now will be read then.
 *
 * @returns stops it
 */
export function poll(everyMs: number, look: () => Promise<void>): () => void {
  let isLooking = false;
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    look()
      .catch(() => {})
      .finally(() => {
        isLooking = false;
      });
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}
