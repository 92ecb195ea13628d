/**
 * Admits connections: so many in all, and a share of them, and of new ones in a second, for each client network.
 *
 * A request that ends without an answer counts as part of a connection. Reading it costs as much as answering it, and the
 * wait for the answer did not slow its client down: a client could open connections, or reset streams, without end.
 */
import type { Logger } from "pino";
import { findNetwork } from "../http/networks.ts";
import { Clients } from "./clients.ts";
import type { TokenBuckets } from "./rate-limiter.ts";
import { Semaphore } from "./semaphore.ts";

/** The limit that a connection was closed for. */
export type ConnectionLimit = "total" | "client" | "rate";

/** Counts connections. */
export interface ConnectionShares {
  /** Counts a connection until the returned function runs. @returns undefined if there is no room for it */
  admit(address: string): (() => void) | undefined;
  /** Counts a request that ended without an answer. @returns whether its connection may stay open */
  abandon(address: string): boolean;
}

/** What the shares depend on. */
export interface ConnectionSharesDeps {
  /** Connections at a time. */
  readonly maxConnections: number;
  /** Connections at a time of one client network; 0 for no limit. */
  readonly maxConnectionsPerClient: number;
  /** New connections of one client network. */
  readonly rate: Pick<TokenBuckets, "take">;
  /** Whether an address has connections of many clients. */
  readonly isShared: (address: string) => boolean;
  readonly onRefused: (limit: ConnectionLimit) => void;
  readonly logger: Pick<Logger, "warn">;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs?: () => number;
}

/** Milliseconds between log lines, however many connections are refused. */
const logIntervalMs = 60_000;
/** Requests without an answer that count as a new connection. */
const requestsPerConnection = 10;

const explanations: Readonly<Record<ConnectionLimit, string>> = {
  total: "connections beyond --max-connections were closed",
  client:
    "connections of one client beyond --max-connections-per-client were closed; if it is a proxy, name it in --trusted-proxies",
  rate: "a client opened connections, or abandoned requests, faster than --max-connections-per-second allows, and its connections were closed; if it is a proxy, name it in --trusted-proxies",
};

/** Creates the counts of one server. */
export function createConnectionShares(deps: ConnectionSharesDeps): ConnectionShares {
  const { maxConnections, maxConnectionsPerClient, isShared, nowMs = () => performance.now() } = deps;
  const all = new Semaphore(maxConnections);
  const networks = new Clients();
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
    abandon(address) {
      if (isShared(address)) return true;
      const network = findNetwork(address);
      if (deps.rate.take(network, 1 / requestsPerConnection) === 0) return true;
      refuse("rate", network);
      return false;
    },
    admit(address) {
      const network = findNetwork(address);
      const hasLimits = !isShared(address);
      if (hasLimits && deps.rate.take(network) > 0) {
        refuse("rate", network);
        return undefined;
      }
      const hasShare = hasLimits && maxConnectionsPerClient > 0;
      const own = hasShare ? networks.claim(network) : undefined;
      if (own?.tryAcquire("connections", maxConnectionsPerClient) === false) {
        own.close();
        refuse("client", network);
        return undefined;
      }
      if (!all.tryAcquire()) {
        own?.close();
        refuse("total", network);
        return undefined;
      }
      return () => {
        own?.close();
        all.release();
      };
    },
  };
}
