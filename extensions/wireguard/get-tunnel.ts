import type { Principal } from "../../src/records/ownership.ts";
import { formatAddress, gatewayAddress } from "../../src/services/vpn/store.ts";
import { buildTunnelStatement, tunnelContext } from "./agreement.ts";
import { requirePeer, type WireguardDeps } from "./deps.ts";

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
