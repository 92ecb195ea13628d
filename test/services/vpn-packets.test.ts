import { randomBytes } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { TunnelRequestSchema, TunnelResponse } from "#gen/vpn/vpn_service_pb.ts";
import { createReplayMemory } from "../../src/services/vpn/replay-window.ts";
import { packetOverhead, Session } from "../../src/services/vpn/session.ts";
import { deriveSessionKeys } from "../../src/services/vpn/session-keys.ts";
import { base64, bytesOf, flipBit } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { invalid, wrongLength } from "../support/refusals.ts";
import { createOutgoing, streamOf } from "../support/streams.ts";
import { present } from "./answers.ts";
import { describeApp, type VpnClient } from "./devices-and-tunnels.ts";
import { openSession, outcomeOf, sealed } from "./open-session.ts";
import {
  confirmAsPeer,
  connectMade,
  connectPeer,
  directionKeysAsPeer,
  openAsPeer,
  registerPeer,
  sealAsPeer,
} from "./vpn-peer.ts";

const data = bytesOf("the quick brown fox");
type Opened = ReturnType<typeof openSession>;

describe("Session", () => {
  it("seals with AES-256-GCM under a 12-byte random vector, with 28 bytes of overhead", () => {
    const { session, sessionKey } = openSession();
    const packets = Array.from({ length: 100 }, () => sealed(session, data));
    expect(packetOverhead).toBe(28);
    for (const packet of packets) {
      expect(packet).toHaveLength(data.length + 28);
      expect(openAsPeer(sessionKey, packet)).toEqual(data);
    }
    // No part of a vector reveals the packet count.
    for (const at of [0, 4, 8]) {
      const parts = packets.map((packet) => Buffer.from(packet.subarray(at, at + 4)).toString("hex"));
      expect(new Set(parts).size).toBe(100);
    }
  });

  it("opens a packet once, also within a larger buffer, and does not change its bytes", () => {
    const { session, sessionKey } = openSession();
    const packet = sealAsPeer(sessionKey, data);
    const part = Buffer.concat([randomBytes(7), packet, randomBytes(7)]).subarray(7, 7 + packet.length);
    expect(outcomeOf(session.open(part))).toEqual(data);
    expect(outcomeOf(session.open(packet))).toBe("PACKET_REPLAYED");
    expect(part.equals(packet)).toBe(true);
  });

  it("rejects a packet with any single byte changed", () => {
    const { session, sessionKey } = openSession();
    const packet = sealAsPeer(sessionKey, data);
    const outcomes = Array.from(packet, (_, at) => outcomeOf(session.open(flipBit(packet, at))));
    expect(new Set(outcomes)).toEqual(new Set(["PACKET_INVALID"]));
    expect(outcomeOf(session.open(packet))).toEqual(data);
  });

  it("rejects a changed packet with a known vector as invalid, not as replayed", () => {
    const { session, sessionKey } = openSession();
    const packet = sealAsPeer(sessionKey, data);
    session.open(packet);
    expect(outcomeOf(session.open(flipBit(packet, 20)))).toBe("PACKET_INVALID");
  });

  it("always rejects its own packets, but not peer packets whose vector differs in one bit", () => {
    const { session, sessionKey } = openSession();
    for (const packet of Array.from({ length: 200 }, () => sealed(session, data))) {
      expect(outcomeOf(session.open(packet))).toBe("PACKET_REFLECTED");
      expect(outcomeOf(session.open(packet))).toBe("PACKET_REFLECTED");
      const vector = flipBit(packet.subarray(0, 12), 11);
      expect(outcomeOf(session.open(sealAsPeer(sessionKey, data, vector)))).toEqual(data);
    }
  });

  it("derives one key per direction with PER_DIRECTION, as the proto specifies", () => {
    const sharedSecret = Uint8Array.from(randomBytes(32));
    const [secret, transcript] = [Uint8Array.from(sharedSecret), "tunnel-1:Y2lwaGVydGV4dA==:00ff"];
    const keys = directionKeysAsPeer(secret, transcript);
    const session = new Session(deriveSessionKeys(sharedSecret, "PER_DIRECTION", transcript));
    expect(sharedSecret, "the shared secret is overwritten").toEqual(new Uint8Array(32));
    const own = sealed(session, data);
    expect(openAsPeer(keys.fromGateway, own)).toEqual(data);
    expect(outcomeOf(session.open(own))).toBe("PACKET_INVALID");
    expect(outcomeOf(session.open(sealAsPeer(keys.toGateway, data)))).toEqual(data);
    for (const wrong of [secret, keys.fromGateway, keys.confirmation])
      expect(outcomeOf(session.open(sealAsPeer(wrong, data)))).toBe("PACKET_INVALID");
    expect(Uint8Array.from(session.confirm(transcript))).toEqual(keys.confirm(transcript));
    expect(keys.confirm(transcript)).not.toEqual(confirmAsPeer(secret, transcript));
  });

  it("needs a rekey when its owner uses most of the gateway's memory, while other owners' sessions do not", () => {
    const memory = createReplayMemory(100);
    const sessions = Array.from({ length: 4 }, () => openSession());
    const [long, short, other, ended] = sessions as [Opened, Opened, Opened, Opened];
    for (const { session } of [long, short, ended]) memory.add(session.received, "mallory");
    memory.add(other.session.received, "ada");
    const receive = ({ session, sessionKey }: Opened, count: number) =>
      Array.from({ length: count }, () => outcomeOf(session.open(sealAsPeer(sessionKey, data))));
    receive(ended, 40);
    memory.remove(ended.session.received);
    expect(receive(other, 30)).toEqual(Array(30).fill(data));
    expect(receive(short, 20)).toEqual(Array(20).fill(data));
    expect(receive(long, 50)).toEqual(Array(50).fill(data));
    expect(receive(other, 1)).toEqual([data]);
    expect(receive(long, 1)).toEqual(["REKEY_NEEDED"]);
    expect(receive(short, 20)).toEqual(Array(20).fill(data));
    expect(receive(other, 20)).toEqual(Array(20).fill(data));
  });

  it.each(["SHARED", "PER_DIRECTION"] as const)("overwrites its keys on close: %s", (keyForm) => {
    const keys = deriveSessionKeys(Uint8Array.from(randomBytes(32)), keyForm, "transcript");
    new Session(keys).close();
    const { peerToGateway, gatewayToPeer, confirmation } = keys;
    const zeros = new Uint8Array(32);
    expect([peerToGateway, gatewayToPeer, confirmation]).toEqual([zeros, zeros, zeros]);
  });
});

type Request = MessageInitShape<typeof TunnelRequestSchema>;

const noSuchTunnel = "tunnel-00000000-0000-4000-8000-000000000000";
const packetInvalid = { code: "InvalidArgument", reason: "PACKET_INVALID" };

async function readCounts(vpn: VpnClient, tunnelId: string) {
  const { tunnels } = await vpn.listTunnels({});
  const { packetCount, byteCount, rekeyCount } = present(
    tunnels.find((tunnel) => tunnel.tunnelId === tunnelId),
  );
  return { packetCount, byteCount, rekeyCount };
}

describeApp("vpn.VpnService.SendPacket", ({ vpn }) => {
  it("seals data so that the peer opens it", async () => {
    const { tunnelId, sessionKey } = await connectPeer(vpn);
    const { packet, ...sizes } = await vpn.sendPacket({ tunnelId, data });
    const ciphertextBytes = data.length + 28;
    expect(sizes).toMatchObject({ plaintextBytes: data.length, ciphertextBytes, gcmOverhead: 28 });
    expect(openAsPeer(sessionKey, packet)).toEqual(data);
  });

  it("seals up to 65,536 random bytes, and fresh ones each time", async () => {
    const { tunnelId, sessionKey } = await connectPeer(vpn);
    const [one, other] = [
      await vpn.sendPacket({ tunnelId, size: 65_536 }),
      await vpn.sendPacket({ tunnelId, size: 65_536 }),
    ].map(({ packet }) => Buffer.from(openAsPeer(sessionKey, packet)));
    expect([one?.length, other?.length]).toEqual([65_536, 65_536]);
    expect(one).not.toEqual(other);
  });
});

describeApp("vpn.VpnService.ReceivePacket", ({ vpn }) => {
  it("opens a peer packet of 65,536 bytes", async () => {
    const { tunnelId, sessionKey } = await connectPeer(vpn);
    const sent = Uint8Array.from(randomBytes(65_536));
    const answer = await vpn.receivePacket({ tunnelId, packet: sealAsPeer(sessionKey, sent) });
    expect(Buffer.from(answer.data).equals(sent)).toBe(true);
  });

  it.each(["rekey", "handshake"] as const)("rejects packets under the key from before a %s", async (verb) => {
    const { tunnelId, sessionKey, decapsulate } = await connectPeer(vpn);
    const [late, replayed] = [sealAsPeer(sessionKey, data), sealAsPeer(sessionKey, data)];
    await vpn.receivePacket({ tunnelId, packet: replayed });
    const fresh = decapsulate((await vpn[verb]({ tunnelId })).ciphertext);
    expect(await refusal(vpn.receivePacket({ tunnelId, packet: late }))).toEqual(packetInvalid);
    expect(await refusal(vpn.receivePacket({ tunnelId, packet: replayed }))).toEqual(packetInvalid);
    const { packet } = await vpn.sendPacket({ tunnelId, data });
    expect(() => openAsPeer(sessionKey, packet)).toThrow();
    expect(openAsPeer(fresh, packet)).toEqual(data);
    await vpn.receivePacket({ tunnelId, packet: sealAsPeer(fresh, data) });
  });
});

describeApp("vpn.VpnService.Rekey", ({ vpn }) => {
  it("counts rekeys, and confirms the new key in a signed transcript", async () => {
    const { tunnelId, decapsulate } = await connectPeer(vpn);
    await vpn.sendPacket({ tunnelId, size: 10 });
    for (const rekeyCount of [1, 2]) {
      const { signature, transcript, ...answer } = await vpn.rekey({ tunnelId });
      expect([answer.rekeyCount, answer.sharedSecretMatch]).toEqual([rekeyCount, undefined]);
      expect(transcript.startsWith(`${tunnelId}:${base64(answer.ciphertext)}:`)).toBe(true);
      const expected = confirmAsPeer(decapsulate(answer.ciphertext), transcript);
      expect(Uint8Array.from(answer.keyConfirmation)).toEqual(expected);
      expect(await vpn.verifyHandshake({ signature, transcript })).toMatchObject({ valid: true });
    }
    expect(await readCounts(vpn, tunnelId)).toEqual({ packetCount: 1, byteCount: 10, rekeyCount: 2 });
  });

  it("confirms that both sides agree if the gateway generated the pair", async () => {
    const { tunnelId } = await connectMade(vpn);
    expect(await vpn.rekey({ tunnelId })).toMatchObject({ rekeyCount: 1, sharedSecretMatch: true });
  });

  it("keeps the session after a rejected rekey", async () => {
    const { tunnelId, sessionKey } = await connectPeer(vpn);
    const call = vpn.rekey({ tunnelId, ciphertext: new Uint8Array(1) });
    expect(await refusal(call)).toEqual(wrongLength("ciphertext"));
    const { packet } = await vpn.sendPacket({ tunnelId, data });
    expect(openAsPeer(sessionKey, packet)).toEqual(data);
  });
});

const sendOf = (tunnelId: string, sent = data): Request => ({
  packet: { case: "send", value: { tunnelId, data: sent } },
});
const receiveOf = (tunnelId: string, packet: Uint8Array<ArrayBuffer>): Request => ({
  packet: { case: "receive", value: { tunnelId, packet } },
});

/** Returns the result for each packet: its bytes as the receiver sees them, or the error. */
async function outcomesOf(answers: AsyncIterable<TunnelResponse>, sessionKey: Uint8Array): Promise<string[]> {
  const outcomes: string[] = [];
  for await (const { result } of answers) outcomes.push(describeResult(result, sessionKey));
  return outcomes;
}

function describeResult({ case: kind, value }: TunnelResponse["result"], sessionKey: Uint8Array): string {
  if (kind === "sent") return `sent ${Buffer.from(openAsPeer(sessionKey, value.packet))}`;
  if (kind === "received") return `received ${Buffer.from(value.data)}`;
  return kind === "error" ? `${value.code} ${value.reason}` : "nothing";
}

/** Opens a stream to send one packet at a time. */
function openTunnel(vpn: VpnClient) {
  const outgoing = createOutgoing<Request>();
  const answers = vpn.tunnel(outgoing)[Symbol.asyncIterator]();
  const next = (request: Request) => {
    outgoing.send(request);
    return answers.next();
  };
  return {
    next,
    exchange: async (request: Request, sessionKey: Uint8Array) =>
      describeResult(present((await next(request)).value).result, sessionKey),
    async end() {
      outgoing.end();
      expect((await answers.next()).done).toBe(true);
    },
  };
}

describeApp("vpn.VpnService.Tunnel", ({ vpn }) => {
  it("answers each packet before the next is sent, also after the end of one tunnel", async () => {
    const [{ tunnelId, sessionKey }, other] = [await connectPeer(vpn), await connectPeer(vpn)];
    const { exchange, end } = openTunnel(vpn);
    expect(await exchange(sendOf(tunnelId, bytesOf("ping")), sessionKey)).toBe("sent ping");
    const pong = sealAsPeer(sessionKey, bytesOf("pong"));
    expect(await exchange(receiveOf(tunnelId, pong), sessionKey)).toBe("received pong");
    expect(await readCounts(vpn, tunnelId)).toMatchObject({ packetCount: 2, byteCount: 8 });
    await vpn.disconnect({ tunnelId });
    expect(await exchange(sendOf(tunnelId), sessionKey)).toBe("NOT_FOUND TUNNEL_NOT_FOUND");
    expect(await exchange(sendOf(other.tunnelId), other.sessionKey)).toMatch(/^sent/);
    await end();
  });

  it("answers 300 packets sent without waiting, in order", async () => {
    const { tunnelId, sessionKey } = await connectPeer(vpn);
    const numbered = Array.from({ length: 300 }, (_, i) => bytesOf(String(i)));
    const requests = numbered.map((sent, i) =>
      i % 2 ? sendOf(tunnelId, sent) : receiveOf(tunnelId, sealAsPeer(sessionKey, sent)),
    );
    expect(await outcomesOf(vpn.tunnel(streamOf(...requests)), sessionKey)).toEqual(
      numbered.map((_, i) => `${i % 2 ? "sent" : "received"} ${i}`),
    );
  });

  it("reports a packet error in order, and continues", async () => {
    const { tunnelId, sessionKey } = await connectPeer(vpn);
    const { tunnelId: silent } = await registerPeer(vpn);
    const packet = sealAsPeer(sessionKey, data);
    const own = Uint8Array.from((await vpn.sendPacket({ tunnelId, data })).packet);
    const requests = [
      sendOf(tunnelId),
      receiveOf(tunnelId, packet.subarray(0, -1)),
      receiveOf(tunnelId, own),
      receiveOf(tunnelId, flipBit(packet, 15)),
      receiveOf(tunnelId, packet),
      receiveOf(tunnelId, packet),
      sendOf(noSuchTunnel),
      sendOf(silent),
      receiveOf(silent, packet),
      sendOf(tunnelId),
    ];
    const text = "the quick brown fox";
    expect(await outcomesOf(vpn.tunnel(streamOf(...requests)), sessionKey)).toEqual([
      `sent ${text}`,
      "INVALID_ARGUMENT PACKET_INVALID",
      "INVALID_ARGUMENT PACKET_REFLECTED",
      "INVALID_ARGUMENT PACKET_INVALID",
      `received ${text}`,
      "ALREADY_EXISTS PACKET_REPLAYED",
      "NOT_FOUND TUNNEL_NOT_FOUND",
      "FAILED_PRECONDITION SESSION_MISSING",
      "FAILED_PRECONDITION SESSION_MISSING",
      `sent ${text}`,
    ]);
    expect(await readCounts(vpn, tunnelId)).toMatchObject({ packetCount: 4, byteCount: 4 * data.length });
  });

  it("uses the new key from a rekey on, within the same stream", async () => {
    const { tunnelId, sessionKey, decapsulate } = await connectPeer(vpn);
    const { exchange, end } = openTunnel(vpn);
    await exchange(sendOf(tunnelId), sessionKey);
    const fresh = decapsulate((await vpn.rekey({ tunnelId })).ciphertext);
    const late = receiveOf(tunnelId, sealAsPeer(sessionKey, data));
    expect(await exchange(late, fresh)).toBe("INVALID_ARGUMENT PACKET_INVALID");
    expect(await exchange(sendOf(tunnelId), fresh)).toBe("sent the quick brown fox");
    await end();
  });

  it("rejects a malformed request after answering everything before it", async () => {
    const { tunnelId, sessionKey } = await connectPeer(vpn);
    const { exchange, next } = openTunnel(vpn);
    expect(await exchange(sendOf(tunnelId), sessionKey)).toMatch(/^sent/);
    expect(await refusal(next(receiveOf(tunnelId, new Uint8Array(28))))).toEqual(invalid("receive.packet"));
  });
});
