/** Limits failed log-ins per minute, in this server's memory. Successful attempts do not count. */
import { RecentMap } from "../calls/recent-map.ts";

export type LoginThrottle = ReturnType<typeof createLoginThrottle>;

/** Attempts of one name in its current minute. */
interface Window {
  readonly endsMs: number;
  attempts: number;
}

const windowMs = 60_000;
/** Minimum number of names to remember per minute. */
const maxNames = 2 ** 16;

/** @param limit attempts per name and minute */
export function createLoginThrottle(limit: number, nowMs: () => number = () => performance.now()) {
  const windows = new RecentMap<Window>({ lifetimeMs: windowMs, maxEntries: maxNames, nowMs });
  const find = (name: string): Window | undefined => {
    const window = windows.get(name);
    return window !== undefined && window.endsMs > nowMs() ? window : undefined;
  };
  const open = (name: string): Window => {
    const window = { endsMs: nowMs() + windowMs, attempts: 0 };
    windows.set(name, window);
    return window;
  };
  return {
    /** Milliseconds until all of these names may try again; 0 if they may now. */
    waitMs(names: readonly string[]): number {
      const waits = names.map((name) => {
        const window = find(name);
        return window !== undefined && window.attempts >= limit ? window.endsMs - nowMs() : 0;
      });
      return Math.max(0, ...waits);
    },
    /**
     * Counts an attempt.
     *
     * @returns a function that uncounts it because it did not fail
     */
    count(names: readonly string[]): () => void {
      const counted = names.map((name) => find(name) ?? open(name));
      for (const window of counted) window.attempts += 1;
      // A later minute has its own window, which never counted this attempt.
      return () => {
        for (const window of counted) window.attempts -= 1;
      };
    },
  };
}
