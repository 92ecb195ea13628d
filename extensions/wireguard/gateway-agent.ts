/** The agent beside the gateway's WireGuard interface: has the peers and keys that the server streams to it. */
import { isIPv4 } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import type { GatewayPeer, PeerKey, WatchPeersResponse } from "#gen/wireguard/wireguard_service_pb.ts";
import { CliError, exitCodes, findReason, toCliError } from "../../src/cli/exit-codes.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { type AgentDeps, createFailureLog, createKeeper, pause, repeat } from "./agent.ts";
import type { InterfacePeer, PeerChange } from "./interface-driver.ts";
import { ManagedPeer } from "./managed-peer.ts";

export interface GatewayAgentDeps extends AgentDeps {
  /** Opens the stream of peers and keys. */
  readonly watch: () => AsyncIterable<WatchPeersResponse>;
  /**
   * Reports whether a key is set.
   *
   * @returns whether the peer still waits for it, and will set the key, too
   */
  readonly report: (report: Pick<PeerKey, "tunnelId" | "epoch"> & { applied: boolean }) => Promise<boolean>;
}

/** Addresses of the network. */
const maxPeers = 65_536;
const keyBytes = 32;

/**
 * Runs until the signal, and leaves random keys, with which no session follows the last one.
 *
 * @throws CliError if another agent has taken over
 */
export async function runGatewayAgent(deps: GatewayAgentDeps, stop: AbortSignal): Promise<void> {
  const ended = new AbortController();
  const gateway = new GatewayAgent(deps);
  const either = AbortSignal.any([stop, ended.signal]);
  await gateway.start();
  const ticks = repeat(deps.timing.tickMs, either, () => gateway.reconcile());
  try {
    await gateway.follow(either);
  } finally {
    ended.abort();
    await ticks;
    await gateway.end();
  }
}

class GatewayAgent {
  readonly #deps: GatewayAgentDeps;
  readonly #keeper;
  readonly #ofInterface;
  readonly #ofServer;
  /** By WireGuard key. */
  #peers = new Map<string, ManagedPeer>();
  /** WireGuard keys by tunnel ID. */
  #tunnels = new Map<string, string>();
  /** WireGuard keys of peers that the agent has put on the interface, or found there with only an address of ours. */
  readonly #placed = new Set<string>();
  /** WireGuard keys of peers that the operator configured; logged once. */
  readonly #refused = new Set<string>();
  /** Whether the server has listed all peers, so that others may be removed. */
  #isListed = false;

  constructor(deps: GatewayAgentDeps) {
    this.#deps = deps;
    this.#keeper = createKeeper(deps.wireguard);
    this.#ofInterface = createFailureLog(deps, `interface ${deps.wireguard.name}`);
    this.#ofServer = createFailureLog(deps, "the stream of peers");
  }

  /** Takes over the peers of an earlier run, with random keys. Before anything else: their keys may be too old. */
  async start(): Promise<void> {
    await this.#keeper.reconcile((found) => {
      for (const { publicKey, allowedIps } of found.filter(isOurs))
        this.#peers.set(publicKey, new ManagedPeer({ publicKey, allowedIps }, this.#deps));
      return this.#findChanges(found);
    });
  }

  /** Makes the interface what it must be. */
  async reconcile(): Promise<void> {
    try {
      await this.#keeper.reconcile((found) => this.#findChanges(found));
      this.#ofInterface.worked();
    } catch (error) {
      this.#ofInterface.failed(error);
    }
  }

  async end(): Promise<void> {
    await this.#keeper
      .reconcile(() => this.#listPlaced().map((peer) => peer.randomize()))
      .catch(this.#ofInterface.failed);
  }

  #findChanges(found: readonly InterfacePeer[]): PeerChange[] {
    const byKey = new Map(found.map((peer) => [peer.publicKey, peer]));
    const removed = found.filter((peer) => isOurs(peer) && !this.#peers.has(peer.publicKey));
    this.#place(byKey);
    const changes = this.#listPlaced().map((peer) => peer.observe(byKey.get(peer.config.publicKey)));
    // Removed first: an address moves from one key to another.
    return [
      ...(this.#isListed ? removed.map(({ publicKey }) => ({ publicKey, kind: "remove" as const })) : []),
      ...changes.filter((change) => change !== undefined),
    ];
  }

  /** A peer that the operator configured stays untouched, whoever registers its key. */
  #place(found: ReadonlyMap<string, InterfacePeer>): void {
    for (const publicKey of this.#peers.keys()) {
      if (this.#placed.has(publicKey)) continue;
      const existing = found.get(publicKey);
      if (existing === undefined || isOurs(existing)) this.#placed.add(publicKey);
      else if (!this.#refused.has(publicKey)) {
        this.#refused.add(publicKey);
        this.#deps.log.warn(
          { peer: publicKey, addresses: existing.allowedIps },
          "the interface has this peer with other addresses, so the agent leaves it alone; remove it, or its tunnel",
        );
      }
    }
  }

  #listPlaced(): ManagedPeer[] {
    return [...this.#peers.values()].filter(({ config }) => this.#placed.has(config.publicKey));
  }

  #forget(publicKey: string): void {
    if (!this.#peers.delete(publicKey)) return;
    this.#placed.delete(publicKey);
    this.#refused.delete(publicKey);
    this.#deps.log.info({ peer: publicKey }, "a peer left");
  }

  /** Follows the stream, and opens it again when it ends. */
  async follow(stop: AbortSignal): Promise<void> {
    const { timing, watch } = this.#deps;
    while (!stop.aborted) {
      try {
        await this.#followOnce(watch(), stop);
      } catch (error) {
        if (error instanceof ConnectError && findReason(error) === "GATEWAY_REPLACED")
          throw new CliError(exitCodes.refused, `${error.rawMessage} (GATEWAY_REPLACED)`);
        if (!stop.aborted) this.#ofServer.failed(error);
      }
      await pause(timing.retryMs * (0.5 + Math.random()), stop);
    }
  }

  async #followOnce(events: AsyncIterable<WatchPeersResponse>, stop: AbortSignal): Promise<void> {
    let isComplete = false;
    this.#tunnels.clear();
    for await (const { event } of untilStopped(events, stop)) {
      if (event.case === "key") void this.#setKey(event.value);
      else if (event.case === "peer") this.#add(event.value);
      else if (event.case === "removed") this.#remove(event.value.tunnelId);
      else if (event.case === "listed") {
        const listed = new Set(this.#tunnels.values());
        for (const publicKey of [...this.#peers.keys()]) if (!listed.has(publicKey)) this.#forget(publicKey);
        isComplete = true;
        this.#isListed = true;
        this.#ofServer.worked();
        this.#deps.log.info({ peers: this.#peers.size }, "the server has listed its peers");
      }
      if (isComplete && event.case !== "key") await this.reconcile();
    }
    if (!stop.aborted) throw new ConnectError("the server ended the stream", Code.Unavailable);
  }

  #add({ tunnelId, wireguardPublicKey, assignedIp }: GatewayPeer): void {
    if (
      wireguardPublicKey.length !== keyBytes ||
      !isTunnelAddress(assignedIp) ||
      Math.max(this.#peers.size, this.#tunnels.size) >= maxPeers
    )
      throw new ConnectError("the server sent a peer that no network has", Code.Internal);
    const publicKey = Buffer.from(wireguardPublicKey).toString("base64");
    if (this.#tunnels.get(tunnelId) !== publicKey) this.#remove(tunnelId);
    this.#tunnels.set(tunnelId, publicKey);
    const allowedIps = [`${assignedIp}/32`];
    // A peer that is already known keeps its pre-shared key.
    if (`${this.#peers.get(publicKey)?.config.allowedIps}` !== `${allowedIps}`) {
      this.#peers.set(publicKey, new ManagedPeer({ publicKey, allowedIps }, this.#deps));
      this.#deps.log.info({ peer: publicKey, address: assignedIp, tunnelId }, "a peer joined");
    }
  }

  #remove(tunnelId: string): void {
    this.#forget(this.#tunnels.get(tunnelId) ?? "");
    this.#tunnels.delete(tunnelId);
  }

  async #setKey({ tunnelId, wireguardPublicKey, epoch, presharedKey }: PeerKey): Promise<void> {
    const { log, report } = this.#deps;
    const publicKey = Buffer.from(wireguardPublicKey).toString("base64");
    const isUsable = presharedKey.length === keyBytes && presharedKey.some((byte) => byte !== 0);
    // The tunnel may have another WireGuard key since: then the agreement was not with this peer.
    const isCurrent = isUsable && this.#tunnels.get(tunnelId) === publicKey;
    const peer = isCurrent ? this.#peers.get(publicKey) : undefined;
    let applied = false;
    try {
      applied = await this.#change(peer, (one) => one.accept(presharedKey));
      if (applied) log.info({ peer: publicKey, epoch }, "set a new pre-shared key");
      else {
        wipe(presharedKey);
        log.warn(
          { peer: publicKey, tunnelId },
          "did not set a pre-shared key: this peer is not on the interface",
        );
      }
    } catch (error) {
      this.#ofInterface.failed(error);
    }
    const isAwaited = await report({ tunnelId, epoch, applied }).catch((error: unknown) => {
      log.warn({ peer: publicKey, reason: toCliError(error, this.#deps.url).message }, "the report failed");
      // The server may have received it, and the peer may have set the key.
      return true;
    });
    if (applied && isAwaited) return;
    await this.#change(peer, (one) => one.restore(presharedKey)).catch(this.#ofInterface.failed);
  }

  /**
   * Changes a peer when its turn comes, unless it has left by then: a change would put it back.
   *
   * @returns whether it has not left
   */
  async #change(
    peer: ManagedPeer | undefined,
    makeChange: (peer: ManagedPeer) => PeerChange | undefined,
  ): Promise<boolean> {
    let isHere = false;
    await this.#keeper.apply(() => {
      isHere =
        peer !== undefined &&
        this.#peers.get(peer.config.publicKey) === peer &&
        this.#placed.has(peer.config.publicKey);
      return peer && isHere ? makeChange(peer) : undefined;
    });
    return isHere;
  }
}

/** Whether an address is in 10.8.0.0/16, the network of all tunnels (vpn.VpnService). Its peers belong to the agent. */
function isTunnelAddress(text: string): boolean {
  return isIPv4(text) && text.startsWith("10.8.");
}

/** Whether a peer of the interface has only an address of ours. */
function isOurs({ allowedIps }: InterfacePeer): boolean {
  const [address = "", ...others] = allowedIps;
  return others.length === 0 && address.endsWith("/32") && isTunnelAddress(address.slice(0, -3));
}

/** Ends at the signal, even while no event arrives. */
async function* untilStopped<T>(events: AsyncIterable<T>, stop: AbortSignal): AsyncGenerator<T> {
  const iterator = events[Symbol.asyncIterator]();
  try {
    while (!stop.aborted) {
      const result = await unlessStopped(iterator.next(), stop);
      if (result === undefined || result.done) return;
      yield result.value;
    }
  } finally {
    // Closes the stream, without waiting for its next event.
    iterator.return?.()?.catch(() => {});
  }
}

/** Unlike a race with a promise that lasts as long as the agent, leaves nothing behind that holds each result. */
function unlessStopped<T>(next: Promise<T>, stop: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const end = (): void => resolve(undefined);
    stop.addEventListener("abort", end, { once: true });
    void next.then(resolve, reject).finally(() => stop.removeEventListener("abort", end));
  });
}
