/** Sends packets through a tunnel. */
import { randomBytes } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { type TunnelRequestSchema, type TunnelResponse, VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { equalBytes } from "../../../crypto/bytes.ts";
import type { ApiClient } from "../../connection/api-client.ts";
import { CliError, distrustError, exitCodes, findReason } from "../../exit-codes.ts";
import type { PeerSession } from "./peer.ts";

const { method } = VpnService;

/** Maximum payload bytes of a packet. */
export const maxPacketBytes = 65_536;

/** The server, the session with it, and its tunnel. */
export interface OpenTunnel {
  readonly server: ApiClient;
  readonly session: PeerSession;
  readonly tunnelId: string;
}

/**
 * Sends random bytes to the gateway and back, sealed in both directions.
 *
 * @returns the packet, and milliseconds of the round trip
 */
export async function pingOnce({ server, session, tunnelId }: OpenTunnel, size: number) {
  const data = Uint8Array.from(randomBytes(size));
  const packet = await session.seal(data);
  const startMs = performance.now();
  requireSame(data, await server.ask(method.receivePacket, { tunnelId, packet }));
  const back = await server.ask(method.sendPacket, { tunnelId, data });
  const roundTripMs = performance.now() - startMs;
  if (!equalBytes(await session.open(back.packet), data))
    throw distrustError("the gateway sealed other data");
  return { packet, roundTripMs };
}

/**
 * Sends a packet a second time.
 *
 * @returns why the gateway refused it; undefined if it did not
 */
export async function replayPacket(
  { server, tunnelId }: OpenTunnel,
  packet: Uint8Array<ArrayBuffer>,
): Promise<string | undefined> {
  try {
    await server.ask(method.receivePacket, { tunnelId, packet });
  } catch (error) {
    const reason = error instanceof ConnectError ? findReason(error) : undefined;
    if (reason !== undefined) return reason;
    throw error;
  }
  return undefined;
}

/**
 * Sends content of any size as packets, and checks that the gateway opened each one to the same bytes.
 *
 * @returns totals of the transfer
 */
export async function sendContent(
  { server, session, tunnelId }: OpenTunnel,
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ readonly packets: number; readonly bytes: number }> {
  // Unanswered packets; backpressure limits them to what the stream can buffer.
  const waiting: Uint8Array[] = [];
  let isSent = false;
  async function* requests(): AsyncGenerator<MessageInitShape<typeof TunnelRequestSchema>> {
    for await (const chunk of chunks) {
      for (let at = 0; at < chunk.length; at += maxPacketBytes) {
        const data = chunk.subarray(at, at + maxPacketBytes);
        waiting.push(data);
        yield { packet: { case: "receive", value: { tunnelId, packet: await session.seal(data) } } };
      }
    }
    isSent = true;
  }
  let packets = 0;
  let bytes = 0;
  for await (const reply of server.stream(method.tunnel, requests())) {
    const data = waiting.shift() ?? new Uint8Array();
    requireSame(data, requireReceived(reply));
    packets += 1;
    bytes += data.length;
  }
  if (!isSent || waiting.length > 0)
    throw new CliError(exitCodes.unreachable, "the gateway ended the stream before it answered all packets");
  return { packets, bytes };
}

function requireSame(sent: Uint8Array, { data }: { readonly data: Uint8Array }): void {
  if (!equalBytes(data, sent)) throw distrustError("the gateway opened a packet and returned other data");
}

function requireReceived({ result }: TunnelResponse) {
  if (result.case === "received") return result.value;
  if (result.case !== "error") throw new Error("the gateway answered a different packet");
  const { code, reason, message } = result.value;
  throw new CliError(exitCodes.refused, `${message} (${code}, ${reason})`);
}
