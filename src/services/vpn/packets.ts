import { randomBytes } from "node:crypto";
import { refuse } from "../../errors.ts";
import { type Principal, seenBy } from "../../records/ownership.ts";
import type { LiveTunnel } from "./gateway.ts";
import { requireTunnel, type VpnDeps } from "./register-peer.ts";
import type { PacketFault, PacketOutcome } from "./session.ts";

/** The content of a packet: data, or `size` random bytes. */
export interface SendInput {
  readonly tunnelId: string;
  readonly data: Uint8Array;
  readonly size: number;
}

/** A packet, and the number of bytes that it carries. */
export interface SentPacket {
  readonly packet: Uint8Array;
  readonly plaintextBytes: number;
}

/** Seals data for a peer. @throws TUNNEL_NOT_FOUND, SESSION_MISSING, REKEY_NEEDED */
export async function sendPacket(
  deps: VpnDeps,
  { tunnelId, data, size }: SendInput,
  principal: Principal,
): Promise<SentPacket> {
  const tunnel =
    findLive(deps, tunnelId, principal) ?? (await throwSessionMissing(deps, tunnelId, principal));
  const plaintext = data.length > 0 ? data : randomBytes(size);
  const packet = take(tunnelId, tunnel.session.seal(plaintext));
  count(tunnel, plaintext.length);
  return { packet, plaintextBytes: plaintext.length };
}

/**
 * Opens a packet from a peer.
 *
 * @throws TUNNEL_NOT_FOUND, SESSION_MISSING, PACKET_INVALID, PACKET_REFLECTED, PACKET_REPLAYED, REKEY_NEEDED
 */
export async function receivePacket(
  deps: VpnDeps,
  { tunnelId, packet }: { readonly tunnelId: string; readonly packet: Uint8Array },
  principal: Principal,
): Promise<Uint8Array> {
  const tunnel =
    findLive(deps, tunnelId, principal) ?? (await throwSessionMissing(deps, tunnelId, principal));
  const data = take(tunnelId, tunnel.session.open(packet));
  count(tunnel, data.length);
  return data;
}

/** Finds the session on this server for a tunnel of the principal. */
export function findLive(
  { gateway }: VpnDeps,
  tunnelId: string,
  principal: Principal,
): LiveTunnel | undefined {
  return seenBy(principal, gateway.live.get(tunnelId));
}

/** Distinguishes a tunnel without a session from one that does not exist. */
export async function throwSessionMissing(
  deps: VpnDeps,
  tunnelId: string,
  principal: Principal,
): Promise<never> {
  await requireTunnel(deps, tunnelId, principal);
  throw refuse("SESSION_MISSING", `tunnel ${tunnelId} has no session on this server; make a handshake`, {
    tunnelId,
  });
}

function count(tunnel: LiveTunnel, bytes: number): void {
  tunnel.packetCount += 1;
  tunnel.byteCount += bytes;
}

const sentences: Readonly<Record<PacketFault, string>> = {
  PACKET_INVALID: "the packet was changed, or another key sealed it",
  PACKET_REFLECTED: "the gateway sealed this packet itself; send packets that the peer sealed",
  PACKET_REPLAYED: "the packet was received before; seal the data again",
  REKEY_NEEDED: "the session key reached its limit of packets; call Rekey",
};

function take(tunnelId: string, outcome: PacketOutcome): Uint8Array {
  if (outcome.ok) return outcome.bytes;
  throw refuse(outcome.fault, `tunnel ${tunnelId}: ${sentences[outcome.fault]}`, { tunnelId });
}
