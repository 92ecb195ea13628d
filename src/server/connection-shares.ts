/**
 * Admits connections: a maximum in total, and a share of it and a rate of new connections per client network.
 *
 * A request that ends without an answer counts as a fraction of a connection. Reading it costs as much as
 * answering it, but no wait for an answer slows the client down: it could otherwise open connections or reset
 * streams without end.
 */
import type { Logger } from "pino";
import { findNetwork } from "../http/networks.ts";
import { Clients } from "./clients.ts";
import type { ServerLimits } from "./limits.ts";
import type { TokenBuckets } from "./rate-limiter.ts";

/** The limit that caused a connection to be closed. */
export type ConnectionLimit = "total" | "client" | "rate";

export interface ConnectionSharesDeps
  extends Pick<ServerLimits, "maxConnections" | "maxConnectionsPerClient"> {
  /** Rate of new connections per client network. */
  readonly rate: Pick<TokenBuckets, "take">;
  /** Returns whether many clients share an address, as behind a proxy. */
  readonly isShared: (address: string) => boolean;
  readonly onRefused: (limit: ConnectionLimit) => void;
  readonly logger: Pick<Logger, "warn">;
  /** Milliseconds on a monotonic clock. */
  readonly nowMs?: () => number;
}

/** Milliseconds between log lines, however many connections are refused. */
const logIntervalMs = 60_000;
/** Unanswered requests that count as one new connection. */
const requestsPerConnection = 10;

const explanations: Readonly<Record<ConnectionLimit, string>> = {
  total: "connections beyond --max-connections were closed",
  client:
    "connections of one client beyond --max-connections-per-client were closed; if it is a proxy, name it in --trusted-proxies",
  rate: "a client opened connections, or abandoned requests, faster than --max-connections-per-second allows, and its connections were closed; if it is a proxy, name it in --trusted-proxies",
};

export function createConnectionShares(deps: ConnectionSharesDeps) {
  const { maxConnections, maxConnectionsPerClient, isShared, nowMs = () => performance.now() } = deps;
  const networks = new Clients();
  /** Connections that end for abandoned requests. Each counts once, however many it has left. */
  const ended = new WeakSet<object>();
  let lastLineMs = Number.NEGATIVE_INFINITY;
  let refused = 0;

  const refuse = (limit: ConnectionLimit, network: string): void => {
    deps.onRefused(limit);
    refused += 1;
    if (nowMs() - lastLineMs < logIntervalMs) return;
    deps.logger.warn({ limit, client: network, refused }, explanations[limit]);
    lastLineMs = nowMs();
    refused = 0;
  };

  return {
    /**
     * Counts a request that ended without an answer.
     *
     * @returns whether its connection may stay open
     */
    abandon(address: string, connection: object): boolean {
      if (isShared(address) || ended.has(connection)) return true;
      const network = findNetwork(address);
      if (deps.rate.take(network, 1 / requestsPerConnection) === 0) return true;
      ended.add(connection);
      refuse("rate", network);
      return false;
    },
    /**
     * Counts a connection until the returned function runs.
     *
     * @returns undefined if there is no room
     */
    admit(address: string): (() => void) | undefined {
      const network = findNetwork(address);
      const hasLimits = !isShared(address);
      if (hasLimits && deps.rate.take(network) > 0) {
        refuse("rate", network);
        return undefined;
      }
      const hasShare = hasLimits && maxConnectionsPerClient > 0;
      const own = networks.claim(network);
      const hasRoom = own.tryAcquire("connections", hasShare ? maxConnectionsPerClient : Infinity);
      if (hasRoom && networks.total("connections") <= maxConnections) return () => own.close();
      own.close();
      refuse(hasRoom ? "total" : "client", network);
      return undefined;
    },
  };
}
