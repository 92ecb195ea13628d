/** What the calls of this extension share. */
import type { CryptoProvider, SecretKey } from "../../src/crypto/provider.ts";
import { refuse } from "../../src/errors.ts";
import type { Principal } from "../../src/records/ownership.ts";
import { requireTunnel } from "../../src/services/vpn/register-peer.ts";
import type { Tunnel, VpnStore } from "../../src/services/vpn/store.ts";
import type { Store } from "../../src/store/store.ts";
import type { Agreements } from "./agreements.ts";
import type { GatewayLink } from "./gateway.ts";
import { reasons } from "./reasons.ts";
import type { PeerRecord, PeerStore } from "./store.ts";

export interface WireguardDeps {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly tunnels: VpnStore;
  readonly peers: PeerStore;
  readonly gateway: GatewayLink;
  readonly agreements: Agreements;
  /** The vpn gateway identity, ML-DSA-65. */
  readonly identityKey: SecretKey;
  readonly now: () => Date;
}

/**
 * Finds a tunnel of the caller with its WireGuard key.
 *
 * @throws TUNNEL_NOT_FOUND, WIREGUARD_KEY_MISSING
 */
export async function requirePeer(
  deps: WireguardDeps,
  tunnelId: string,
  principal: Principal,
): Promise<{ readonly tunnel: Tunnel; readonly peer: PeerRecord }> {
  const tunnel = await requireTunnel(deps, tunnelId, principal);
  const peer = await deps.peers.find(tunnelId);
  if (peer !== undefined) return { tunnel, peer };
  throw refuse(reasons.keyMissing, `tunnel ${tunnelId} has no WireGuard key; register one with RegisterKey`, {
    tunnelId,
  });
}
