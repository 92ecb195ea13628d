/** Limits log-in attempts per minute, in the memory of this server. Attempts that succeed do not count. */
import type { RecentName, RecentNames } from "../shared-memory/recent-names.ts";
import { monotonicMs } from "../shared-memory/shared-memory.ts";

/** Attempts by name. */
export interface LoginThrottle {
  /** Milliseconds until one of these names may try again; 0 if all may. */
  waitMs(names: readonly string[]): number;
  /** Counts an attempt. @returns a function that removes it from the count, because it did not fail */
  count(names: readonly string[]): () => void;
}

const windowMs = 60_000;

/**
 * @param limit the attempts that one name may make in a minute
 * @param windows the attempts of each name, and when its minute ends
 */
export function createLoginThrottle(
  limit: number,
  windows: RecentNames,
  nowMs: () => number = monotonicMs,
): LoginThrottle {
  const isOpen = (window: RecentName): boolean => window.atMs > nowMs();
  return {
    waitMs: (names) => {
      const waits = names.map((name) =>
        windows.update(name, (window) => (window.value >= limit ? window.atMs - nowMs() : 0)),
      );
      return Math.max(0, ...waits);
    },
    count(names) {
      const ends = names.map((name) =>
        windows.update(name, (window) => {
          window.value = isOpen(window) ? window.value + 1 : 1;
          window.atMs = isOpen(window) ? window.atMs : nowMs() + windowMs;
          return window.atMs;
        }),
      );
      return () => {
        for (const [i, name] of names.entries())
          windows.update(name, (window) => {
            // A later minute never counted this attempt.
            if (window.atMs === ends[i]) window.value -= 1;
          });
      };
    },
  };
}
