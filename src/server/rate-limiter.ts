/** Limits what each client may do in a second. */
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

/** A token bucket for each name. */
export interface TokenBuckets {
  /** Takes a token. @returns milliseconds until there is one, or 0 if it was taken */
  take(name: string): number;
  giveBack(name: string): void;
}

/**
 * Creates buckets that get `perSecond` tokens a second and hold twice as many.
 *
 * @param perSecond 0 for no limit.
 * @param buckets the tokens of each name, and when they were counted. A forgotten name starts with a full bucket.
 */
export function createTokenBuckets(
  perSecond: number,
  buckets: RecentNames,
  nowMs: () => number = monotonicMs,
): TokenBuckets {
  if (perSecond === 0) return { take: () => 0, giveBack: () => {} };
  const capacity = perSecond * 2;
  return {
    take(name) {
      const missing = buckets.update(name, (bucket) => {
        // Counted from 1, because 0 marks an unknown bucket.
        const atMs = nowMs() + 1;
        const elapsedMs = Math.max(0, atMs - bucket.atMs);
        const isKnown = bucket.atMs > 0;
        const tokens = isKnown ? Math.min(capacity, bucket.value + (elapsedMs / 1000) * perSecond) : capacity;
        bucket.atMs = atMs;
        bucket.value = tokens < 1 ? tokens : tokens - 1;
        return 1 - tokens;
      });
      return Math.max(0, (missing / perSecond) * 1000);
    },
    giveBack: (name) =>
      buckets.update(name, (bucket) => {
        if (bucket.atMs > 0) bucket.value = Math.min(capacity, bucket.value + 1);
      }),
  };
}

/** Creates a limiter: each client may make `perSecond` calls a second, and twice as many at once; 0 for no limit. */
export function createRateLimiter(
  perSecond: number,
  buckets: RecentNames,
  nowMs?: () => number,
): RateLimiter {
  const tokens = createTokenBuckets(perSecond, buckets, nowMs);
  return {
    take(client) {
      const waitMs = tokens.take(client);
      if (waitMs === 0) return;
      throw refuseForNow(
        "RATE_LIMITED",
        `this caller makes more than ${perSecond} calls a second; slow down`,
        waitMs,
        { limit: String(perSecond) },
      );
    },
    giveBack: tokens.giveBack,
  };
}
