/** Bounds what callers ask for: calls at a time, and calls a second of each client. */
import type { ConnectError, Interceptor } from "@connectrpc/connect";
import { refuseForNow } from "../../errors.ts";
import { clientKey, networkOf } from "../client-address.ts";
import { callerKey, isInfrastructure } from "./access.ts";
import { mapStream } from "./streams.ts";

/** How much there may be at a time. */
export interface ConcurrencyLimits {
  readonly maxCalls: number;
  readonly maxStreams: number;
}

/** Milliseconds after which to try again where nobody knows better. */
const retryMs = 1000;

/** Counts calls and streams, and refuses those beyond the limits: those that run keep their pace. */
export interface Concurrency {
  /** Whether one more unary call would be refused: to be asked before anything is done for it. */
  isFull(): boolean;
  /** The refusal of a unary call; one for all, as it must cost nothing. */
  readonly refusal: ConnectError;
  readonly interceptor: Interceptor;
}

/** Makes the counts of one server. Health checks and reflection are answered always. */
export function createConcurrency({ maxCalls, maxStreams }: ConcurrencyLimits): Concurrency {
  let [calls, streams] = [0, 0];
  const refusal = refuseBusy(`${maxCalls} calls run already`, maxCalls);
  const interceptor: Interceptor = (next) => async (req) => {
    if (isInfrastructure(req.method)) return next(req);
    if (!req.stream) {
      if (calls >= maxCalls) throw refuseBusy(`${maxCalls} calls run already`, maxCalls);
      calls += 1;
      try {
        return await next(req);
      } finally {
        calls -= 1;
      }
    }
    if (streams >= maxStreams) throw refuseBusy(`${maxStreams} streams are open already`, maxStreams);
    streams += 1;
    let isOpen = true;
    const end = (): void => {
      if (isOpen) streams -= 1;
      isOpen = false;
    };
    // A caller who goes away may leave the answers unread.
    req.signal.addEventListener("abort", end, { once: true });
    try {
      const res = await next(req);
      if (res.stream) return { ...res, message: mapStream(res.message, { end }) };
      end();
      return res;
    } catch (error) {
      end();
      throw error;
    }
  };
  return { isFull: () => calls >= maxCalls, refusal, interceptor };
}

function refuseBusy(what: string, limit: number): ConnectError {
  return refuseForNow("SERVER_BUSY", `${what}; try again in a second`, retryMs, { limit: String(limit) });
}

/** Clients to remember; one that is forgotten begins anew. */
const maxClients = 100_000;

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/**
 * Refuses calls beyond a number a second of each client, with twice as many at once: of a user wherever they call from,
 * or of an address while nobody has said who calls.
 *
 * @param perSecond 0 for no limit
 * @param who "address" before callers are authenticated, so that guessing costs; "subject" after.
 */
export function rateInterceptor(
  perSecond: number,
  who: "address" | "subject",
  nowMs: () => number = () => performance.now(),
): Interceptor {
  const buckets = new Map<string, Bucket>();
  const capacity = perSecond * 2;
  return (next) => (req) => {
    const client =
      who === "address"
        ? networkOf(req.contextValues.get(clientKey))
        : req.contextValues.get(callerKey)?.subject;
    if (perSecond === 0 || client === undefined || isInfrastructure(req.method)) return next(req);
    const atMs = nowMs();
    const bucket = buckets.get(client) ?? { tokens: capacity, filledAtMs: atMs };
    bucket.tokens = Math.min(capacity, bucket.tokens + ((atMs - bucket.filledAtMs) / 1000) * perSecond);
    bucket.filledAtMs = atMs;
    // The last used last, so that the first is the one to forget.
    buckets.delete(client);
    buckets.set(client, bucket);
    const [oldest] = buckets.keys();
    if (buckets.size > maxClients && oldest !== undefined) buckets.delete(oldest);
    if (bucket.tokens < 1) {
      const waitMs = ((1 - bucket.tokens) / perSecond) * 1000;
      throw refuseForNow("RATE_LIMITED", `more than ${perSecond} calls a second; slow down`, waitMs, {
        limit: String(perSecond),
      });
    }
    bucket.tokens -= 1;
    return next(req);
  };
}
