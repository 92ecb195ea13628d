/** Limits log-in attempts per minute, in the memory of this server. Attempts that succeed do not count. */
import { RecentMap } from "../calls/recent-map.ts";

/** Attempts by name. */
export type LoginThrottle = ReturnType<typeof createLoginThrottle>;

/** The attempts of a name in its minute. */
interface Window {
  readonly endsMs: number;
  attempts: number;
}

const windowMs = 60_000;
/** Names to remember at least in a minute. */
const maxNames = 2 ** 16;

/** @param limit the attempts that one name may make in a minute */
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
    /** Milliseconds until one of these names may try again; 0 if all may. */
    waitMs(names: readonly string[]): number {
      const waits = names.map((name) => {
        const window = find(name);
        return window !== undefined && window.attempts >= limit ? window.endsMs - nowMs() : 0;
      });
      return Math.max(0, ...waits);
    },
    /** Counts an attempt. @returns a function that removes it from the count, because it did not fail */
    count(names: readonly string[]): () => void {
      const counted = names.map((name) => find(name) ?? open(name));
      for (const window of counted) window.attempts += 1;
      // A later minute, which has a window of its own, never counted this attempt.
      return () => {
        for (const window of counted) window.attempts -= 1;
      };
    },
  };
}
