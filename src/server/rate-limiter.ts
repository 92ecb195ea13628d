/** Limits what each client may do in a second. */

import { RecentMap } from "../calls/recent-map.ts";
import { refuseForNow } from "../errors.ts";

/** Counts calls against a rate. */
export interface RateLimiter {
  /** Counts a call of a client. @throws RATE_LIMITED */
  take(client: string): void;
  /** Takes back a call that is counted elsewhere. */
  giveBack(client: string): void;
}

/** A token bucket for each name. */
export interface TokenBuckets {
  /** Takes a token, or a part of one. @returns milliseconds until there is as much, or 0 if it was taken */
  take(name: string, amount?: number): number;
  giveBack(name: string): void;
}

/** The tokens of a name, and when they were counted. */
interface Bucket {
  tokens: number;
  atMs: number;
}

/** Seconds in which an empty bucket fills. A bucket that was not used for so long is like a new one. */
const fillSeconds = 2;
/** Names to remember at least. A name that was forgotten early has a full bucket again. */
const maxNames = 2 ** 16;

/**
 * Creates buckets that get `perSecond` tokens a second and hold twice as many.
 *
 * @param perSecond 0 for no limit.
 */
export function createTokenBuckets(
  perSecond: number,
  nowMs: () => number = () => performance.now(),
): TokenBuckets {
  if (perSecond === 0) return { take: () => 0, giveBack: () => {} };
  const capacity = perSecond * fillSeconds;
  const buckets = new RecentMap<Bucket>({ lifetimeMs: fillSeconds * 1000, maxEntries: maxNames, nowMs });
  return {
    take(name, amount = 1) {
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
    giveBack(name) {
      const bucket = buckets.get(name);
      if (bucket !== undefined) bucket.tokens = Math.min(capacity, bucket.tokens + 1);
    },
  };
}

/** Creates a limiter: each client may make `perSecond` calls a second, and twice as many at once; 0 for no limit. */
export function createRateLimiter(perSecond: number, nowMs?: () => number): RateLimiter {
  const tokens = createTokenBuckets(perSecond, nowMs);
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
