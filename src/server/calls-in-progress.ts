/**
 * Counts calls in progress, from their first byte to the end of their response, and refuses calls beyond the
 * limits. A call counts while its request is still arriving and while its response waits to be read.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Claim, Clients } from "./clients.ts";
import { isInfrastructure } from "./interceptors/access.ts";
import { limitReached, type ServerLimits } from "./limits.ts";

/** How many calls may be in progress at the same time. */
export type CallLimits = Pick<
  ServerLimits,
  "maxCalls" | "maxStreams" | "maxCallsPerUser" | "maxStreamsPerUser"
>;

/** A resource that a call holds. */
export interface Held {
  /** Releases the resource. Must be called once. */
  close(): void;
}

/** The calls in progress on one server. */
export type CallsInProgress = ReturnType<typeof createCallsInProgress>;

/**
 * A client may hold at most this multiple of the server's free places. One client alone can take four fifths
 * of all places, two can take four ninths each, and a new client always finds room (Choudhury and Hahne,
 * "Dynamic queue length thresholds", 1998).
 */
export const shareOfFree = 4;

/**
 * Creates the counters of one server.
 *
 * Health checks and reflection are counted separately, with the same limits. A full server therefore still
 * answers its probes, and a client cannot open more streams by watching its health.
 */
export function createCallsInProgress(limits: CallLimits, clients: Clients) {
  const [services, infrastructure] = [createPlaces(limits), createPlaces(limits)];
  const fullRefusal = clientShareUsed(limits.maxCalls);
  const placesFor = (method: DescMethod): Places => {
    const { calls, streams } = isInfrastructure(method) ? infrastructure : services;
    return method.methodKind === "unary" ? calls : streams;
  };
  /** The number of calls that each client may have while the server has this many. */
  const shareOf = ({ limit }: Places, calls: number): number => shareOfFree * Math.max(0, limit - calls);
  const enter = (method: DescMethod, client: Claim, limit: number): void => {
    const isUnary = method.methodKind === "unary";
    const holding = isUnary ? "calls" : "streams";
    const places = placesFor(method);
    // The server count already includes this call.
    const share = isUnary ? shareOf(places, places.taken - 1) : Number.POSITIVE_INFINITY;
    if (client.tryAcquire(holding, Math.min(limit, share))) return;
    throw share < limit ? clientShareUsed(places.limit) : clientFull(limit, holding);
  };
  return {
    /** Returns, at no cost, whether any client could have used up its share of unary calls. */
    isCrowded: (): boolean =>
      [services, infrastructure].some(({ calls }) => calls.taken >= shareOf(calls, calls.taken)),
    /**
     * Returns whether another unary call from a client would be refused.
     *
     * @param client returns the client's name
     */
    isFullFor(method: DescMethod, client: () => string): boolean {
      const places = placesFor(method);
      const calls = places.taken;
      const share = shareOf(places, calls);
      if (calls >= places.limit) return true;
      if (calls < share) return false;
      const claim = clients.claim(client());
      const isFull = claim.sum("calls") >= share;
      claim.close();
      return isFull;
    },
    /** Refuses unary calls while the server is full. Shared by all calls, because a flood must cost nothing. */
    fullRefusal,
    /**
     * Counts a call against the server's limit.
     *
     * @throws SERVER_BUSY
     */
    enter(method: DescMethod): Held {
      const places = placesFor(method);
      if (places.taken >= places.limit) throw serverFull(places, method);
      places.taken += 1;
      return {
        close: () => {
          places.taken -= 1;
        },
      };
    },
    /**
     * Counts a call against its client's limit until the claim is closed.
     *
     * @throws CONCURRENCY_LIMITED, SERVER_BUSY
     */
    enterFor(method: DescMethod, client: Claim): void {
      const isUnary = method.methodKind === "unary";
      // A load balancer may check health many times at once, but nobody may take all places for it.
      const isUnlimited = isUnary && isInfrastructure(method);
      const limit = isUnlimited ? 0 : isUnary ? limits.maxCallsPerUser : limits.maxStreamsPerUser;
      enter(method, client, limit || Number.POSITIVE_INFINITY);
    },
    /**
     * Counts a call for an address until its user is known, so that one address cannot take all places.
     *
     * @throws SERVER_BUSY
     */
    enterUnknown: (method: DescMethod, address: Claim): void =>
      enter(method, address, Number.POSITIVE_INFINITY),
  };
}

/** Places for calls of one kind. */
interface Places {
  readonly limit: number;
  taken: number;
}

function createPlaces({ maxCalls, maxStreams }: CallLimits): { calls: Places; streams: Places } {
  return { calls: { limit: maxCalls, taken: 0 }, streams: { limit: maxStreams, taken: 0 } };
}

function clientShareUsed(limit: number): ConnectError {
  return limitReached(
    "SERVER_BUSY",
    limit,
    "the server has about as many calls in progress as it can answer in time; try again in a second",
  );
}

function serverFull({ limit }: Places, { methodKind }: DescMethod): ConnectError {
  const what = methodKind === "unary" ? "calls are in progress" : "streams are open";
  return limitReached("SERVER_BUSY", limit, `${limit} ${what} already; try again in a second`);
}

function clientFull(limit: number, what: string): ConnectError {
  return limitReached(
    "CONCURRENCY_LIMITED",
    limit,
    `this caller already has ${limit} ${what} in progress; wait until one ends`,
  );
}
