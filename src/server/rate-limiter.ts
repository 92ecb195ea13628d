/** Limits the rate of each client (token buckets). */

import { RecentMap } from "../calls/recent-map.ts";
import { limitReached } from "./limits.ts";

/** One token bucket per name. */
export type TokenBuckets = ReturnType<typeof createTokenBuckets>;

/** The tokens of a name and when they were counted. */
interface Bucket {
  tokens: number;
  atMs: number;
}

/** Seconds in which an empty bucket fills. A bucket unused for that long is like a new one. */
const fillSeconds = 2;
/** Minimum number of names to remember. A forgotten name starts again with a full bucket. */
const maxNames = 2 ** 16;

/**
 * Creates buckets that refill at `perSecond` tokens a second and hold twice as many.
 *
 * @param perSecond 0 for no limit
 */
export function createTokenBuckets(perSecond: number, nowMs: () => number = () => performance.now()) {
  const capacity = perSecond * fillSeconds;
  const buckets = new RecentMap<Bucket>({ lifetimeMs: fillSeconds * 1000, maxEntries: maxNames, nowMs });
  return {
    /**
     * Takes a token or a fraction of one.
     *
     * @returns 0 if it was taken, otherwise the milliseconds until enough tokens are available
     */
    take(name: string, amount = 1): number {
      if (perSecond === 0) return 0;
      const atMs = nowMs();
      const bucket = buckets.get(name) ?? { tokens: capacity, atMs };
      const elapsedMs = Math.max(0, atMs - bucket.atMs);
      bucket.tokens = Math.min(capacity, bucket.tokens + (elapsedMs / 1000) * perSecond);
      bucket.atMs = atMs;
      buckets.set(name, bucket);
      if (bucket.tokens < amount) return ((amount - bucket.tokens) / perSecond) * 1000;
      bucket.tokens -= amount;
      return 0;
    },
    giveBack(name: string): void {
      const bucket = buckets.get(name);
      if (bucket !== undefined) bucket.tokens = Math.min(capacity, bucket.tokens + 1);
    },
  };
}

/**
 * Creates a limiter with `perSecond` calls a second per client, and bursts of twice as many; 0 for no limit.
 */
export function createRateLimiter(perSecond: number, nowMs?: () => number) {
  const tokens = createTokenBuckets(perSecond, nowMs);
  return {
    /**
     * Counts a client's call.
     *
     * @throws RATE_LIMITED
     */
    take(client: string): void {
      const waitMs = tokens.take(client);
      if (waitMs === 0) return;
      const message = `this user or address makes more than ${perSecond} calls a second; slow down`;
      throw limitReached("RATE_LIMITED", perSecond, message, waitMs);
    },
    /** Refunds a call that is counted elsewhere. */
    giveBack: tokens.giveBack,
  };
}
