/** The stream of the gateway's agent: peers, their changes, and pre-shared keys to set. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { WatchPeersResponseSchema } from "#gen/wireguard/wireguard_service_pb.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { refuseField } from "../../src/errors.ts";
import type { Stored } from "../../src/records/table-declaration.ts";
import { formatAddress, gatewayAddress, tunnelNetwork } from "../../src/services/vpn/store.ts";
import type { WireguardDeps } from "./deps.ts";
import type { GatewayInterface, KeyToSet } from "./gateway.ts";
import type { PeerRecord } from "./store.ts";
import { requireWireguardKey } from "./tunnel-key.ts";

/** Interval of looks at the store, for tunnels that were disconnected. */
const pollIntervalMs = 1000;
/** Records read at once. */
const batch = 500;

type PeerEvent = NonNullable<MessageInitShape<typeof WatchPeersResponseSchema>["event"]>;

/**
 * Makes the caller the gateway, and yields what its agent has to do, at the agent's pace. Nothing waits in memory for an
 * agent that does not read, except the keys that peers wait for.
 *
 * @throws WIREGUARD_KEY_INVALID, GATEWAY_REPLACED
 */
export async function* watchPeers(
  deps: WireguardDeps,
  shown: GatewayInterface,
  signal: AbortSignal,
): AsyncGenerator<PeerEvent> {
  requireWireguardKey(shown.wireguardKey);
  if (Number(shown.endpoint.split(":").at(-1)) > 65_535)
    throw refuseField("endpoint", "has no valid port; ports are 1 to 65535");
  const session = deps.gateway.connect(shown);
  const ended = AbortSignal.any([signal, session.ended]);
  const list = createPeerList(deps);
  try {
    yield* list.readAll();
    yield { case: "listed", value: { gatewayAddress, network: tunnelNetwork } };
    while (!ended.aborted) {
      await session.wait(pollIntervalMs, ended);
      // Changes first, see takeKeys.
      yield* list.readChanges(session.takeChanged());
      yield* sendKeys(session.takeKeys());
    }
    session.ended.throwIfAborted();
  } finally {
    session.close();
  }
}

/** Wipes the keys once the stream has written them, or has ended. */
function* sendKeys(keys: readonly KeyToSet[]): Generator<PeerEvent> {
  try {
    for (const { wireguardKey: wireguardPublicKey, ...key } of keys)
      yield { case: "key", value: { ...key, wireguardPublicKey } };
  } finally {
    wipe(...keys.map(({ presharedKey }) => presharedKey));
  }
}

/** The peers that the agent knows. */
function createPeerList({ store, tunnels, peers }: WireguardDeps) {
  /** WireGuard keys by tunnel ID. */
  const known = new Map<string, Uint8Array>();
  /** Tunnel IDs by WireGuard key, in hexadecimal. */
  const holders = new Map<string, string>();
  const forget = (tunnelId: string): PeerEvent => {
    const wireguardPublicKey = known.get(tunnelId) ?? new Uint8Array();
    known.delete(tunnelId);
    holders.delete(wireguardPublicKey.toHex());
    return { case: "removed", value: { tunnelId, wireguardPublicKey } };
  };
  const add = async function* (found: readonly Stored<PeerRecord>[]): AsyncGenerator<PeerEvent> {
    const ids = found.map(({ record }) => record.tunnelId);
    const owners = await tunnels.findSome("tunnelId", ids);
    const tunnelsById = new Map(owners.map((tunnel) => [tunnel.record.tunnelId, tunnel]));
    for (const { record, isIntact } of found) {
      const { tunnelId, wireguardKey: wireguardPublicKey } = record;
      const tunnel = tunnelsById.get(tunnelId);
      if (tunnel === undefined) await remove(tunnelId);
      // A damaged record is not trusted; verifications report it.
      if (!isIntact || tunnel?.isIntact !== true) continue;
      const holder = holders.get(wireguardPublicKey.toHex());
      if (holder === tunnelId) continue;
      if (holder !== undefined) yield forget(holder);
      holders.delete(known.get(tunnelId)?.toHex() ?? "");
      holders.set(wireguardPublicKey.toHex(), tunnelId);
      known.set(tunnelId, wireguardPublicKey);
      const assignedIp = formatAddress(tunnel.record);
      yield { case: "peer", value: { tunnelId, wireguardPublicKey, assignedIp } };
    }
  };
  const remove = (tunnelId: string): Promise<void> =>
    store.write((transaction) => peers.removeAny(transaction, { tunnelId }));
  return {
    /** Yields all peers. */
    async *readAll(): AsyncGenerator<PeerEvent> {
      let position = 0;
      for (;;) {
        const found = await peers.listAfter(position, batch);
        const last = found.at(-1);
        if (last === undefined) return;
        position = last.position;
        yield* add(found);
      }
    },
    /**
     * Yields removed peers, then added ones. A removed peer's WireGuard key may have a new tunnel, even if this looked
     * for removed ones just before.
     *
     * @param changed tunnels with a new WireGuard key
     */
    async *readChanges(changed: readonly string[]): AsyncGenerator<PeerEvent> {
      for (const tunnelId of await tunnels.findMissing([...known.keys()])) {
        await remove(tunnelId);
        yield forget(tunnelId);
      }
      for (let i = 0; i < changed.length; i += batch)
        yield* add(await peers.findSome("tunnelId", changed.slice(i, i + batch)));
    },
  };
}
