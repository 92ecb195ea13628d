/** Limits log-in attempts per minute, in the memory of this server. Attempts that succeed do not count. */

/** Attempts by name. */
export interface LoginThrottle {
  /** Milliseconds until one of these names may try again; 0 if all may. */
  waitMs(names: readonly string[]): number;
  count(names: readonly string[]): void;
  /** Removes one attempt from the count, because it did not fail. */
  forget(names: readonly string[]): void;
}

const windowMs = 60_000;
/** The most names to remember. Beyond it the oldest are forgotten, so that callers cannot fill the memory. */
const maxNames = 100_000;

interface Window {
  readonly endsAtMs: number;
  attempts: number;
}

/** @param limit the attempts that one name may make in a minute */
export function createLoginThrottle(
  limit: number,
  nowMs: () => number = () => performance.now(),
): LoginThrottle {
  const windows = new Map<string, Window>();
  const current = (name: string): Window | undefined => {
    const window = windows.get(name);
    if (window === undefined || window.endsAtMs > nowMs()) return window;
    windows.delete(name);
    return undefined;
  };
  return {
    waitMs(names) {
      const full = names.map(current).filter((window) => window !== undefined && window.attempts >= limit);
      return Math.max(0, ...full.map((window) => (window?.endsAtMs ?? 0) - nowMs()));
    },
    count(names) {
      for (const name of names) {
        const window = current(name);
        if (window) window.attempts += 1;
        else windows.set(name, { endsAtMs: nowMs() + windowMs, attempts: 1 });
        const [oldest] = windows.keys();
        if (windows.size > maxNames && oldest !== undefined) windows.delete(oldest);
      }
    },
    forget(names) {
      for (const name of names) {
        const window = current(name);
        if (window) window.attempts -= 1;
      }
    },
  };
}
