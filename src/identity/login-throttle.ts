/** Limits log-in attempts per minute, in the memory of this server. Attempts that succeed do not count. */
import type { RecentName, RecentNames } from "../shared-memory/recent-names.ts";
import { monotonicMs } from "../shared-memory/shared-memory.ts";

/** Attempts by name. */
export interface LoginThrottle {
  /** Milliseconds until one of these names may try again; 0 if all may. */
  waitMs(names: readonly string[]): number;
  count(names: readonly string[]): void;
  /** Removes one attempt from the count, because it did not fail. */
  forget(names: readonly string[]): void;
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
      for (const name of names)
        windows.update(name, (window) => {
          window.value = isOpen(window) ? window.value + 1 : 1;
          window.atMs = isOpen(window) ? window.atMs : nowMs() + windowMs;
        });
    },
    forget(names) {
      for (const name of names)
        windows.update(name, (window) => {
          if (isOpen(window)) window.value -= 1;
        });
    },
  };
}
