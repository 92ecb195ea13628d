import { equalBytes } from "../../src/crypto/bytes.ts";
import { refuse, refuseField } from "../../src/errors.ts";
import { type Principal, systemPrincipal } from "../../src/records/ownership.ts";
import { requireTunnel } from "../../src/services/vpn/register-peer.ts";
import { formatAddress, gatewayAddress, type Tunnel } from "../../src/services/vpn/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import type { WireguardDeps } from "./deps.ts";
import { reasons } from "./reasons.ts";

/**
 * Registers the WireGuard key of a tunnel.
 *
 * @param wireguardKey 32 bytes
 * @throws TUNNEL_NOT_FOUND, TUNNEL_KEY_SERVER_HELD, WIREGUARD_KEY_INVALID, WIREGUARD_KEY_TAKEN, GATEWAY_DISCONNECTED
 */
export async function registerKey(
  deps: WireguardDeps,
  tunnelId: string,
  wireguardKey: Uint8Array,
  principal: Principal,
) {
  const { store, gateway } = deps;
  const tunnel = await requireTunnel(deps, tunnelId, principal);
  if (tunnel.isServerHeld)
    throw refuse(
      reasons.tunnelKeyServerHeld,
      `the server generated the key of tunnel ${tunnelId}; register a peer with its own ML-KEM-1024 key`,
      { tunnelId },
    );
  const { wireguardKey: gatewayWireguardPublicKey, endpoint: gatewayEndpoint } = gateway.require();
  requireWireguardKey(wireguardKey);
  if (equalBytes(wireguardKey, gatewayWireguardPublicKey)) throw keyTaken();
  await store.write((transaction) => putKey(deps, transaction, tunnel, wireguardKey, principal));
  gateway.peerChanged(tunnelId);
  return { assignedIp: formatAddress(tunnel), gatewayWireguardPublicKey, gatewayEndpoint, gatewayAddress };
}

/** @throws WIREGUARD_KEY_INVALID for the key of an interface without a private key */
export function requireWireguardKey(key: Uint8Array): void {
  if (key.every((byte) => byte === 0))
    throw refuseField(
      "wireguardPublicKey",
      "is all zeros; send the key that wg pubkey prints for the interface's private key",
      reasons.keyInvalid,
    );
}

/** @throws TUNNEL_NOT_FOUND, WIREGUARD_KEY_TAKEN */
async function putKey(
  { peers, tunnels, now }: WireguardDeps,
  transaction: WriteTransaction,
  { tunnelId, owner }: Tunnel,
  wireguardKey: Uint8Array,
  principal: Principal,
): Promise<void> {
  const { db } = transaction;
  await requireTunnel({ tunnels }, tunnelId, principal, transaction);
  const holder = await peers.findIntact({ wireguardKey }, { db });
  if (holder?.tunnelId === tunnelId) return;
  if (holder !== undefined) {
    // The key of a disconnected tunnel is free.
    if ((await tunnels.find(holder.tunnelId, systemPrincipal, transaction)) !== undefined) throw keyTaken();
    await peers.removeAny(transaction, { tunnelId: holder.tunnelId });
  }
  await peers.removeAny(transaction, { tunnelId });
  await peers.insert(transaction, { tunnelId, wireguardKey, lastEpoch: 0, owner, createdAt: now() });
}

function keyTaken(): Error {
  return refuse(
    reasons.keyTaken,
    "this WireGuard key belongs to another tunnel; generate a new one with wg genkey",
  );
}
