/** Limits the calls per second of each client. */
import { refuseForNow } from "../errors.ts";
import type { RecentNames } from "../shared-memory/recent-names.ts";
import { monotonicMs } from "../shared-memory/shared-memory.ts";

/** Counts calls against a rate. */
export interface RateLimiter {
  /** Counts a call of a client. @throws RATE_LIMITED */
  take(client: string): void;
  /** Takes back a call that is counted elsewhere. */
  giveBack(client: string): void;
}

/**
 * Creates a limiter: each client may make `perSecond` calls a second, and twice as many at once (a token bucket).
 *
 * @param perSecond 0 for no limit.
 * @param buckets the tokens of each client, and when they were counted. A forgotten client starts with a full bucket.
 */
export function createRateLimiter(
  perSecond: number,
  buckets: RecentNames,
  nowMs: () => number = monotonicMs,
): RateLimiter {
  if (perSecond === 0) return { take: () => {}, giveBack: () => {} };
  const capacity = perSecond * 2;
  return {
    take(client) {
      const missing = buckets.update(client, (bucket) => {
        // Counted from 1, because 0 marks an unknown bucket.
        const atMs = nowMs() + 1;
        const elapsedMs = Math.max(0, atMs - bucket.atMs);
        const isKnown = bucket.atMs > 0;
        const tokens = isKnown ? Math.min(capacity, bucket.value + (elapsedMs / 1000) * perSecond) : capacity;
        bucket.atMs = atMs;
        bucket.value = tokens < 1 ? tokens : tokens - 1;
        return 1 - tokens;
      });
      if (missing <= 0) return;
      throw refuseForNow(
        "RATE_LIMITED",
        `this caller makes more than ${perSecond} calls a second; slow down`,
        (missing / perSecond) * 1000,
        { limit: String(perSecond) },
      );
    },
    giveBack: (client) =>
      buckets.update(client, (bucket) => {
        if (bucket.atMs > 0) bucket.value = Math.min(capacity, bucket.value + 1);
      }),
  };
}
