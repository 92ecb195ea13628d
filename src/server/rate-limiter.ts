/** Limits the calls per second of each client. */
import { LRUCache } from "lru-cache";
import { refuseForNow } from "../errors.ts";

/** Number of clients to remember. A forgotten client starts with a full bucket. */
const maxClients = 100_000;

/** Counts calls against a rate. */
export interface RateLimiter {
  /** Counts a call of a client. @throws RATE_LIMITED */
  take(client: string): void;
  /** Takes back a call that is counted elsewhere. */
  giveBack(client: string): void;
}

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/**
 * Creates a limiter: each client may make `perSecond` calls a second, and twice as many at once (a token bucket).
 *
 * @param perSecond 0 for no limit.
 */
export function createRateLimiter(
  perSecond: number,
  nowMs: () => number = () => performance.now(),
): RateLimiter {
  if (perSecond === 0) return { take: () => {}, giveBack: () => {} };
  const buckets = new LRUCache<string, Bucket>({ max: maxClients });
  const capacity = perSecond * 2;
  return {
    take(client) {
      const atMs = nowMs();
      let bucket = buckets.get(client);
      if (bucket === undefined) {
        bucket = { tokens: capacity, filledAtMs: atMs };
        buckets.set(client, bucket);
      }
      bucket.tokens = Math.min(capacity, bucket.tokens + ((atMs - bucket.filledAtMs) / 1000) * perSecond);
      bucket.filledAtMs = atMs;
      if (bucket.tokens < 1) {
        const waitMs = ((1 - bucket.tokens) / perSecond) * 1000;
        throw refuseForNow(
          "RATE_LIMITED",
          `this caller makes more than ${perSecond} calls a second; slow down`,
          waitMs,
          {
            limit: String(perSecond),
          },
        );
      }
      bucket.tokens -= 1;
    },
    giveBack(client) {
      const bucket = buckets.get(client);
      if (bucket !== undefined) bucket.tokens = Math.min(capacity, bucket.tokens + 1);
    },
  };
}
