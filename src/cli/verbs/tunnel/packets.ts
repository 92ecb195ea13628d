/** Sends packets over a tunnel stream. */
import { randomBytes } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type TunnelRequestSchema, type TunnelResponse, VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { equalBytes } from "../../../crypto/bytes.ts";
import type { ApiClient } from "../../connection/api-client.ts";
import { CliError, distrustError, exitCodes } from "../../exit-codes.ts";
import type { PeerSession } from "./handshake.ts";

/** Maximum payload bytes of a packet. */
export const maxPacketBytes = 65_536;

type Request = MessageInitShape<typeof TunnelRequestSchema>;

/** A stream on which each request waits for its reply. */
export interface Exchange {
  request(request: Request): Promise<TunnelResponse>;
  close(): Promise<void>;
}

/** Opens a stream that carries one request at a time. */
export function openExchange(server: ApiClient): Exchange {
  const turns: (Request | undefined)[] = [];
  let wake = (): void => {};
  async function* requests(): AsyncGenerator<Request> {
    for (;;) {
      while (turns.length === 0)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      const turn = turns.shift();
      if (turn === undefined) return;
      yield turn;
    }
  }
  const replies = server.stream(VpnService.method.tunnel, requests());
  const push = (turn: Request | undefined): void => {
    turns.push(turn);
    wake();
  };
  return {
    async request(request) {
      push(request);
      const { value, done } = await replies.next();
      if (done) throw new Error("the gateway ended the stream");
      return value;
    },
    async close() {
      push(undefined);
      // Read to the end, so that a late error is not lost.
      for await (const _ of replies);
    },
  };
}

/**
 * Sends random bytes to the gateway and back, sealed in both directions.
 *
 * @returns milliseconds of the round trip
 */
export async function pingOnce(
  exchange: Exchange,
  session: PeerSession,
  tunnelId: string,
  size: number,
): Promise<{ readonly packet: Uint8Array<ArrayBuffer>; readonly roundTripMs: number }> {
  const data = Uint8Array.from(randomBytes(size));
  const packet = await session.seal(data);
  const startMs = performance.now();
  const there = await exchange.request({ packet: { case: "receive", value: { tunnelId, packet } } });
  if (!equalBytes(requireReceived(there), data))
    throw distrustError("the gateway opened a packet and returned other data");
  const back = await exchange.request({ packet: { case: "send", value: { tunnelId, data } } });
  const roundTripMs = performance.now() - startMs;
  if (!equalBytes(await session.open(requireSent(back)), data))
    throw distrustError("the gateway sealed other data");
  return { packet, roundTripMs };
}

/** Totals of a transfer. */
export interface Sent {
  readonly packets: number;
  readonly bytes: number;
}

/** Sends content of any size as packets, and checks that the gateway opened each one to the same bytes. */
export async function sendContent(
  server: ApiClient,
  session: PeerSession,
  tunnelId: string,
  chunks: AsyncIterable<Uint8Array>,
): Promise<Sent> {
  // Unanswered packets; backpressure limits them to what the stream can buffer.
  const waiting: Uint8Array[] = [];
  async function* requests(): AsyncGenerator<Request> {
    for await (const chunk of chunks) {
      for (let at = 0; at < chunk.length; at += maxPacketBytes) {
        const data = chunk.subarray(at, at + maxPacketBytes);
        waiting.push(data);
        yield { packet: { case: "receive", value: { tunnelId, packet: await session.seal(data) } } };
      }
    }
  }
  let packets = 0;
  let bytes = 0;
  for await (const reply of server.stream(VpnService.method.tunnel, requests())) {
    const data = waiting.shift() ?? new Uint8Array();
    if (!equalBytes(requireReceived(reply), data))
      throw distrustError("the gateway opened a packet and returned other data");
    packets += 1;
    bytes += data.length;
  }
  if (waiting.length > 0) throw new Error("the gateway ended the stream before it answered all packets");
  return { packets, bytes };
}

/** Returns why a packet was refused; undefined if it was accepted. */
export function findRefusal({ result }: TunnelResponse): string | undefined {
  return result.case === "error" ? result.value.reason : undefined;
}

function requireReceived(reply: TunnelResponse): Uint8Array {
  if (reply.result.case === "received") return reply.result.value.data;
  throw failed(reply);
}

function requireSent(reply: TunnelResponse): Uint8Array {
  if (reply.result.case === "sent") return reply.result.value.packet;
  throw failed(reply);
}

function failed({ result }: TunnelResponse): Error {
  if (result.case !== "error") return new Error("the gateway answered a different packet");
  const { code, reason, message } = result.value;
  return new CliError(exitCodes.refused, `${message} (${code}, ${reason})`);
}
