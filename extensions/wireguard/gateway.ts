/** The gateway's agent, as this server sees it: its stream, and the keys that it has yet to set. */
import { setTimeout as pause } from "node:timers/promises";
import type { ConnectError } from "@connectrpc/connect";
import { copyBytes, equalBytes, wipe } from "../../src/crypto/bytes.ts";
import { refuse } from "../../src/errors.ts";
import { reasons } from "./reasons.ts";

/** How long a peer waits for the agent's report. */
export const reportTimeoutMs = 10_000;

/** What the agent says about its WireGuard interface. */
export interface GatewayInterface {
  /** 32 bytes. */
  readonly wireguardKey: Uint8Array;
  /** Host and UDP port. */
  readonly endpoint: string;
}

/** A pre-shared key for the agent. */
export interface KeyToSet {
  readonly tunnelId: string;
  readonly wireguardKey: Uint8Array;
  readonly epoch: number;
  /** 32 bytes. */
  readonly presharedKey: Uint8Array;
}

/** A key that waits for its report. */
interface Delivery {
  readonly key: KeyToSet;
  isSent: boolean;
  settle(error?: unknown): void;
}

/** The connected agent. */
interface Connected {
  readonly shown: GatewayInterface;
  readonly ending: AbortController;
  /** Aborts when something happened that its stream has not looked at. */
  news: AbortController;
  /** Tunnels with a new WireGuard key. */
  readonly changed: Set<string>;
}

/** The agent's stream. */
export interface AgentSession {
  /** Aborts with the reason why this server ends the stream. */
  readonly ended: AbortSignal;
  /** Returns the tunnels that have registered a WireGuard key since the last call. */
  takeChanged(): string[];
  /**
   * Returns copies of the keys that were not sent yet, except for tunnels that `takeChanged` returns next. The
   * caller wipes each after it was sent.
   */
  takeKeys(): KeyToSet[];
  /** Resolves when there is something to do, at the latest after `ms`, or when a signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  close(): void;
}

export type GatewayLink = ReturnType<typeof createGatewayLink>;

export function createGatewayLink() {
  /** By tunnel ID: a newer key of a tunnel replaces an older one. */
  const deliveries = new Map<string, Delivery>();
  let current: Connected | undefined;

  const disconnect = (why: ConnectError): void => {
    current?.ending.abort(why);
    current = undefined;
    for (const { settle } of [...deliveries.values()]) settle(gatewayDisconnected());
  };

  /** Returns whether the connected agent has this WireGuard key. */
  const hasKey = (wireguardKey: Uint8Array): boolean =>
    current !== undefined && equalBytes(current.shown.wireguardKey, wireguardKey);

  return {
    /** Returns the interface of the connected agent. */
    find: (): GatewayInterface | undefined => current?.shown,
    /** @throws GATEWAY_DISCONNECTED */
    require(): GatewayInterface {
      if (current === undefined) throw gatewayDisconnected();
      return current.shown;
    },
    /** Makes an agent the gateway, and ends the former one's stream. */
    connect(shown: GatewayInterface): AgentSession {
      disconnect(refuse(reasons.gatewayReplaced, "another agent has connected as the gateway; run only one"));
      const own: Connected = {
        shown,
        ending: new AbortController(),
        news: new AbortController(),
        changed: new Set(),
      };
      current = own;
      return {
        ended: own.ending.signal,
        takeChanged() {
          const changed = [...own.changed];
          own.changed.clear();
          return changed;
        },
        takeKeys() {
          // The agent must know a peer before it gets the peer's key.
          const unsent = [...deliveries.values()].filter(
            ({ isSent, key }) => !isSent && !own.changed.has(key.tunnelId),
          );
          for (const delivery of unsent) delivery.isSent = true;
          // A delivery may end, and wipe its key, before the stream has sent it: an empty key would protect nothing.
          return unsent.map(({ key }) => ({ ...key, presharedKey: copyBytes(key.presharedKey) }));
        },
        async wait(ms, signal) {
          await pause(ms, undefined, { signal: AbortSignal.any([signal, own.news.signal]) }).catch(() => {});
          own.news = new AbortController();
        },
        close() {
          if (current === own) disconnect(gatewayDisconnected());
        },
      };
    },
    /** Notifies the agent's stream that a tunnel has another WireGuard key. */
    peerChanged(tunnelId: string): void {
      current?.changed.add(tunnelId);
      current?.news.abort();
    },
    /**
     * Sends a key to the agent and waits until the agent has set it.
     *
     * @param presharedKey copied
     * @param gatewayWireguardKey the gateway with which the peer agreed
     * @throws GATEWAY_DISCONNECTED, GATEWAY_SILENT, KEY_NOT_SET, EPOCH_USED
     */
    async deliver(
      { presharedKey, ...about }: KeyToSet,
      gatewayWireguardKey: Uint8Array,
      signal: AbortSignal,
    ): Promise<void> {
      const { tunnelId, epoch } = about;
      if (!hasKey(gatewayWireguardKey)) throw gatewayDisconnected();
      signal.throwIfAborted();
      const former = deliveries.get(tunnelId);
      if (former !== undefined && former.key.epoch >= epoch) throw epochUsed(tunnelId, former.key.epoch);
      former?.settle(epochUsed(tunnelId, epoch));
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const key = { ...about, presharedKey: copyBytes(presharedKey) };
      const delivery: Delivery = {
        key,
        isSent: false,
        settle(error) {
          clearTimeout(timer);
          signal.removeEventListener("abort", abort);
          if (deliveries.get(tunnelId) === delivery) deliveries.delete(tunnelId);
          wipe(key.presharedKey);
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      const abort = (): void => delivery.settle(signal.reason);
      const timer = setTimeout(() => delivery.settle(gatewaySilent(tunnelId)), reportTimeoutMs);
      signal.addEventListener("abort", abort, { once: true });
      deliveries.set(tunnelId, delivery);
      current?.news.abort();
      return promise;
    },
    /**
     * Takes the agent's report about a key.
     *
     * @returns false if no peer waits for it
     */
    report({ tunnelId, epoch, applied }: { tunnelId: string; epoch: number; applied: boolean }): boolean {
      const delivery = deliveries.get(tunnelId);
      if (delivery?.key.epoch !== epoch || !delivery.isSent) return false;
      delivery.settle(applied ? undefined : keyNotSet(tunnelId));
      return true;
    },
    hasKey,
    close: (): void => disconnect(gatewayDisconnected()),
  };
}

export function gatewayDisconnected(): ConnectError {
  return refuse(
    reasons.gatewayDisconnected,
    "the gateway's agent is not connected to this server; start qsp wireguard up --gateway",
  );
}

function gatewaySilent(tunnelId: string): ConnectError {
  const seconds = reportTimeoutMs / 1000;
  return refuse(
    reasons.gatewaySilent,
    `the gateway's agent did not report the key of tunnel ${tunnelId} within ${seconds} seconds; agree again`,
    { tunnelId },
  );
}

function keyNotSet(tunnelId: string): ConnectError {
  return refuse(
    reasons.keyNotSet,
    `the gateway's agent could not set the key of tunnel ${tunnelId}; its log says why`,
    { tunnelId },
  );
}

export function epochUsed(tunnelId: string, lastEpoch: number): ConnectError {
  return refuse(reasons.epochUsed, `tunnel ${tunnelId} has confirmed epoch ${lastEpoch}; use a later one`, {
    tunnelId,
    lastEpoch: String(lastEpoch),
  });
}
