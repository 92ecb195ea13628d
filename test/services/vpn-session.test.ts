import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createReplayMemory } from "../../src/services/vpn/replay-window.ts";
import { packetOverhead, Session } from "../../src/services/vpn/session.ts";
import { deriveSessionKeys } from "../../src/services/vpn/session-keys.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { openSession, outcomeOf, sealed } from "./open-session.ts";
import { confirmAsPeer, directionKeysAsPeer, openAsPeer, sealAsPeer } from "./vpn-peer.ts";

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
