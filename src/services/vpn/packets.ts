import { randomBytes } from "node:crypto";
import type { ReceivePacketRequest, SendPacketRequest } from "#gen/vpn/vpn_service_pb.ts";
import { refuse } from "../../errors.ts";
import { type Principal, seenBy } from "../../records/ownership.ts";
import type { LiveTunnel } from "./gateway.ts";
import { requireTunnel, type VpnDeps } from "./register-peer.ts";
import { type PacketFault, type PacketOutcome, packetOverhead } from "./session.ts";

/**
 * Seals data for a peer, or `size` random bytes.
 *
 * @throws TUNNEL_NOT_FOUND, SESSION_MISSING, REKEY_NEEDED
 */
export async function sendPacket(
  deps: VpnDeps,
  { tunnelId, data, size }: SendPacketRequest,
  principal: Principal,
) {
  const tunnel =
    findLive(deps, tunnelId, principal) ?? (await throwSessionMissing(deps, tunnelId, principal));
  const plaintext = data.length > 0 ? data : randomBytes(size);
  const packet = take(tunnelId, tunnel.session.seal(plaintext));
  count(tunnel, plaintext.length);
  const plaintextBytes = plaintext.length;
  return { packet, plaintextBytes, ciphertextBytes: packet.length, gcmOverhead: packetOverhead };
}

/**
 * Opens a packet from a peer.
 *
 * @throws TUNNEL_NOT_FOUND, SESSION_MISSING, PACKET_INVALID, PACKET_REFLECTED, PACKET_REPLAYED,
 *   REKEY_NEEDED
 */
export async function receivePacket(
  deps: VpnDeps,
  { tunnelId, packet }: ReceivePacketRequest,
  principal: Principal,
) {
  const tunnel =
    findLive(deps, tunnelId, principal) ?? (await throwSessionMissing(deps, tunnelId, principal));
  const data = take(tunnelId, tunnel.session.open(packet));
  count(tunnel, data.length);
  return { data };
}

/**
 * Finds this server's session for a tunnel of the principal. Use it in the same turn of the event loop: the
 * end of the tunnel overwrites its keys.
 */
export function findLive(
  { gateway }: VpnDeps,
  tunnelId: string,
  principal: Principal,
): LiveTunnel | undefined {
  return seenBy(principal, gateway.live.get(tunnelId));
}

/** Distinguishes a tunnel without a session from a missing tunnel. */
export async function throwSessionMissing(
  deps: VpnDeps,
  tunnelId: string,
  principal: Principal,
): Promise<never> {
  await requireTunnel(deps, tunnelId, principal);
  throw refuse("SESSION_MISSING", `tunnel ${tunnelId} has no session on this server; call Handshake`, {
    tunnelId,
  });
}

function count(tunnel: LiveTunnel, bytes: number): void {
  tunnel.packetCount += 1;
  tunnel.byteCount += bytes;
}

const sentences: Readonly<Record<PacketFault, string>> = {
  PACKET_INVALID: "the packet was changed, or sealed with a different key",
  PACKET_REFLECTED: "the gateway sealed this packet itself; send packets that the peer sealed",
  PACKET_REPLAYED: "the packet was received before; seal the data again",
  REKEY_NEEDED: "the session key has reached its packet limit; call Rekey",
};

function take(tunnelId: string, outcome: PacketOutcome): Uint8Array {
  if (outcome.ok) return outcome.bytes;
  throw refuse(outcome.fault, `tunnel ${tunnelId}: ${sentences[outcome.fault]}`, { tunnelId });
}
