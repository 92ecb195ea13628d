/** Counts what may fail only so often a minute, in the memory of this server. */

/** Attempts by name. */
export interface LoginThrottle {
  /** Milliseconds until one of these names may try again; 0 if all may. */
  waitMs(names: readonly string[]): number;
  count(names: readonly string[]): void;
  /** Takes one attempt back: it did not fail. */
  forget(names: readonly string[]): void;
}

const windowMs = 60_000;
/** Names to remember; beyond that the oldest are forgotten, so that nobody can fill the memory. */
const maxNames = 100_000;

interface Window {
  readonly endsAtMs: number;
  attempts: number;
}

/** @param limit attempts of one name in a minute */
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
