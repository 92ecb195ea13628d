import { randomBytes } from "node:crypto";
import { refuse } from "../../errors.ts";
import { seenBy, type Viewer } from "../../records/ownership.ts";
import type { LiveTunnel } from "./gateway.ts";
import { requireTunnel, type VpnParts } from "./register-peer.ts";
import type { PacketFault, PacketOutcome } from "./session.ts";

/** What a packet is to carry: data, or so many random bytes. */
export interface SendOrder {
  readonly tunnelId: string;
  readonly data: Uint8Array;
  readonly size: number;
}

/** A packet, and how many bytes it carries. */
export interface SentPacket {
  readonly packet: Uint8Array;
  readonly plaintextBytes: number;
}

/** Seals data for a peer. @throws TUNNEL_NOT_FOUND, SESSION_MISSING, REKEY_NEEDED */
export async function sendPacket(
  parts: VpnParts,
  { tunnelId, data, size }: SendOrder,
  viewer: Viewer,
): Promise<SentPacket> {
  const tunnel = findLive(parts, tunnelId, viewer) ?? (await refuseWithoutSession(parts, tunnelId, viewer));
  const plaintext = data.length > 0 ? data : randomBytes(size);
  const packet = take(tunnelId, tunnel.session.seal(plaintext));
  count(tunnel, plaintext.length);
  return { packet, plaintextBytes: plaintext.length };
}

/**
 * Opens a packet of a peer.
 *
 * @throws TUNNEL_NOT_FOUND, SESSION_MISSING, PACKET_INVALID, PACKET_REFLECTED, PACKET_REPLAYED, REKEY_NEEDED
 */
export async function receivePacket(
  parts: VpnParts,
  { tunnelId, packet }: { readonly tunnelId: string; readonly packet: Uint8Array },
  viewer: Viewer,
): Promise<Uint8Array> {
  const tunnel = findLive(parts, tunnelId, viewer) ?? (await refuseWithoutSession(parts, tunnelId, viewer));
  const data = take(tunnelId, tunnel.session.open(packet));
  count(tunnel, data.length);
  return data;
}

/** The session that this server has with a tunnel of the viewer's. */
export function findLive({ gateway }: VpnParts, tunnelId: string, viewer: Viewer): LiveTunnel | undefined {
  return seenBy(viewer, gateway.live.get(tunnelId));
}

/** Tells a tunnel without a session from one that is not there. */
export async function refuseWithoutSession(
  parts: VpnParts,
  tunnelId: string,
  viewer: Viewer,
): Promise<never> {
  await requireTunnel(parts, tunnelId, viewer);
  throw refuse("SESSION_MISSING", `tunnel ${tunnelId} has no session with this server; make a handshake`, {
    tunnelId,
  });
}

function count(tunnel: LiveTunnel, bytes: number): void {
  tunnel.packetCount += 1;
  tunnel.byteCount += bytes;
}

const sentences: Readonly<Record<PacketFault, string>> = {
  PACKET_INVALID: "the packet was changed, or is under another key",
  PACKET_REFLECTED: "the gateway sealed this packet itself; send packets that the peer sealed",
  PACKET_REPLAYED: "the packet came before",
  REKEY_NEEDED: "as many packets went under this key as may; call Rekey",
};

function take(tunnelId: string, outcome: PacketOutcome): Uint8Array {
  if (outcome.ok) return outcome.bytes;
  throw refuse(outcome.fault, `tunnel ${tunnelId}: ${sentences[outcome.fault]}`, { tunnelId });
}
