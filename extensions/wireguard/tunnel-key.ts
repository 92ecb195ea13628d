/** The WireGuard key of a tunnel: its registration, and the signed statement about it. */
import { createPublicKey, diffieHellman, generateKeyPairSync } from "node:crypto";
import { equalBytes } from "../../src/crypto/bytes.ts";
import { refuse, refuseField } from "../../src/errors.ts";
import { type Principal, systemPrincipal } from "../../src/records/ownership.ts";
import { requireTunnel } from "../../src/services/vpn/register-peer.ts";
import { formatAddress, gatewayAddress, type Tunnel } from "../../src/services/vpn/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import { buildTunnelStatement, tunnelContext } from "./agreement.ts";
import { requirePeer, type WireguardDeps } from "./deps.ts";
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

/**
 * Returns a tunnel's facts with the gateway's signature.
 *
 * @param nonce 32 bytes
 * @throws TUNNEL_NOT_FOUND, WIREGUARD_KEY_MISSING, GATEWAY_DISCONNECTED
 */
export async function getTunnel(
  deps: WireguardDeps,
  tunnelId: string,
  nonce: Uint8Array,
  principal: Principal,
) {
  const { provider, gateway, identityKey, now } = deps;
  const { tunnel, peer } = await requirePeer(deps, tunnelId, principal);
  const { wireguardKey: gatewayWireguardKey, endpoint: gatewayEndpoint } = gateway.require();
  const facts = {
    ...{ lastEpoch: peer.lastEpoch, serverTimeMs: now().getTime() },
    ...{ gatewayEndpoint, gatewayAddress, assignedIp: formatAddress(tunnel) },
  };
  const statement = buildTunnelStatement({
    ...{ tunnelId, nonce, ...facts },
    gatewayWireguardKey,
    peerWireguardKey: peer.wireguardKey,
    registeredPublicKey: tunnel.publicKey,
  });
  return {
    ...facts,
    wireguardPublicKey: peer.wireguardKey,
    gatewayWireguardPublicKey: gatewayWireguardKey,
    signature: await provider.sign(identityKey, statement, { context: tunnelContext }),
  };
}

/** The prime of Curve25519 (RFC 7748, section 4.1). */
const prime = 2n ** 255n - 19n;

/**
 * Accepts only keys that an interface can have, and each in one form: WireGuard ignores bit 255, so that another form
 * would be a second key for the same peer.
 *
 * @throws WIREGUARD_KEY_INVALID for a key that is not canonical, or has a low order
 */
export function requireWireguardKey(key: Uint8Array): void {
  if (BigInt(`0x${key.toReversed().toHex()}`) < prime && !isLowOrder(key)) return;
  throw refuseField(
    "wireguardPublicKey",
    "no private key has this public key; send the key that wg pubkey prints for the interface's private key",
    reasons.keyInvalid,
  );
}

/** Whether every X25519 computation with a public key gives zeros, which OpenSSL refuses (RFC 7748, section 6.1). */
function isLowOrder(key: Uint8Array): boolean {
  const publicKey = createPublicKey({
    key: { kty: "OKP", crv: "X25519", x: key.toBase64({ alphabet: "base64url" }) },
    format: "jwk",
  });
  try {
    diffieHellman({ publicKey, privateKey: generateKeyPairSync("x25519").privateKey });
    return false;
  } catch {
    return true;
  }
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
    "this WireGuard key belongs to another tunnel or to the gateway; generate a new one with wg genkey",
  );
}
