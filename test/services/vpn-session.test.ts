import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { type PacketOutcome, packetOverhead, Session } from "../../src/services/vpn/session.ts";
import { deriveSessionKeys } from "../../src/services/vpn/session-keys.ts";
import { makeTemporaryDirectory } from "../temporary-directory.ts";
import { bytesOf, connectTo, flipBit, present, type VpnClient } from "./devices-and-tunnels.ts";
import {
  confirmAsPeer,
  connectPeer,
  directionKeysAsPeer,
  encapsulateTo,
  makePeer,
  openAsPeer,
  sealAsPeer,
} from "./vpn-peer.ts";

const data = bytesOf("the quick brown fox");

/** A session, its key as a peer has it, and the very bytes that the session owns. */
function openSession() {
  const sharedSecret = Uint8Array.from(randomBytes(32));
  const sessionKey = Uint8Array.from(sharedSecret);
  return { session: new Session(deriveSessionKeys(sharedSecret, "SHARED", "")), sessionKey, sharedSecret };
}

/** What a packet or data came to: the fault, or the bytes. */
function outcomeOf(outcome: PacketOutcome): string | Uint8Array {
  return outcome.ok ? Uint8Array.from(outcome.bytes) : outcome.fault;
}

function sealed(session: Session, content: Uint8Array): Uint8Array {
  const outcome = session.seal(content);
  if (!outcome.ok) throw new Error(outcome.fault);
  return outcome.bytes;
}

describe("Session", () => {
  it("seals AES-256-GCM under a vector of 12 random bytes, with 28 bytes of overhead", () => {
    const { session, sessionKey } = openSession();
    const packets = Array.from({ length: 100 }, () => sealed(session, data));
    expect(packetOverhead).toBe(28);
    for (const packet of packets) {
      expect(packet).toHaveLength(data.length + 28);
      expect(openAsPeer(sessionKey, packet)).toEqual(data);
    }
    const vectors = packets.map((packet) => Buffer.from(packet.subarray(0, 12)).toString("hex"));
    expect(new Set(vectors).size).toBe(100);
  });

  it("opens a packet once, and keeps the given bytes as they are", () => {
    const { session, sessionKey } = openSession();
    const packet = sealAsPeer(sessionKey, data);
    const before = Uint8Array.from(packet);
    expect(outcomeOf(session.open(packet))).toEqual(data);
    expect(outcomeOf(session.open(packet))).toBe("PACKET_REPLAYED");
    expect(packet).toEqual(before);
  });

  it("opens what is a part of a larger buffer", () => {
    const { session, sessionKey } = openSession();
    const packet = sealAsPeer(sessionKey, data);
    const larger = Buffer.concat([randomBytes(7), packet, randomBytes(7)]);
    const part = larger.subarray(7, 7 + packet.length);
    expect(outcomeOf(session.open(part))).toEqual(data);
    expect(outcomeOf(session.open(packet))).toBe("PACKET_REPLAYED");
  });

  it("refuses a packet with any one of its bytes changed", () => {
    const { session, sessionKey } = openSession();
    const packet = sealAsPeer(sessionKey, data);
    const outcomes = Array.from(packet, (_, at) => outcomeOf(session.open(flipBit(packet, at))));
    expect(new Set(outcomes)).toEqual(new Set(["PACKET_INVALID"]));
    expect(outcomeOf(session.open(packet))).toEqual(data);
  });

  it("refuses a changed packet under a known vector as invalid, not as replayed", () => {
    const { session, sessionKey } = openSession();
    const packet = sealAsPeer(sessionKey, data);
    session.open(packet);
    expect(outcomeOf(session.open(flipBit(packet, 20)))).toBe("PACKET_INVALID");
  });

  it("refuses a packet under another key", () => {
    const { session } = openSession();
    expect(outcomeOf(session.open(sealAsPeer(randomBytes(32), data)))).toBe("PACKET_INVALID");
  });

  it("refuses its own packets, each time, and not those of the peer under a vector that differs in one bit", () => {
    const { session, sessionKey } = openSession();
    for (const packet of Array.from({ length: 200 }, () => sealed(session, data))) {
      expect(outcomeOf(session.open(packet))).toBe("PACKET_REFLECTED");
      expect(outcomeOf(session.open(packet))).toBe("PACKET_REFLECTED");
      const vector = flipBit(packet.subarray(0, 12), 11);
      expect(outcomeOf(session.open(sealAsPeer(sessionKey, data, vector)))).toEqual(data);
    }
  });

  it("has with PER_DIRECTION a key for each direction, which the proto says how to derive", () => {
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

  it("overwrites the keys of both directions at its end", () => {
    const keys = deriveSessionKeys(Uint8Array.from(randomBytes(32)), "PER_DIRECTION", "transcript");
    new Session(keys).close();
    const { peerToGateway, gatewayToPeer, confirmation } = keys;
    const zeros = new Uint8Array(32);
    expect([peerToGateway, gatewayToPeer, confirmation]).toEqual([zeros, zeros, zeros]);
  });

  it("confirms its key as the proto says: HMAC-SHA-256 under a key that HKDF-SHA-256 derives", () => {
    const { session, sessionKey } = openSession();
    const transcript = "tunnel-1:Y2lwaGVydGV4dA==:00ff";
    expect(Uint8Array.from(session.confirm(transcript))).toEqual(confirmAsPeer(sessionKey, transcript));
    expect(session.confirm(`${transcript}0`)).not.toEqual(session.confirm(transcript));
  });

  it("overwrites its key at its end", () => {
    const { session, sharedSecret } = openSession();
    session.close();
    expect(sharedSecret).toEqual(new Uint8Array(32));
  });

  it.runIf(process.env.SLOW === "1")(
    "refuses the packet after 1,000,000, but still seals (SLOW=1)",
    { timeout: 120_000 },
    () => {
      const { session, sessionKey } = openSession();
      const vector = Buffer.alloc(12);
      for (let i = 0; i < 1_000_000; i++) {
        vector.writeUInt32BE(i);
        if (!session.open(sealAsPeer(sessionKey, data, vector)).ok) throw new Error(`packet ${i} is refused`);
      }
      expect(outcomeOf(session.open(sealAsPeer(sessionKey, data)))).toBe("REKEY_NEEDED");
      vector.writeUInt32BE(5);
      expect(outcomeOf(session.open(sealAsPeer(sessionKey, data, vector)))).toBe("PACKET_REPLAYED");
      expect(openAsPeer(sessionKey, sealed(session, data))).toEqual(data);
    },
  );
});

/** The app in a process of its own that can be looked into. */
async function startGateway() {
  const dataDir = makeTemporaryDirectory();
  const script = join(import.meta.dirname, "vpn-gateway-process.ts");
  const child = fork(script, [dataDir], { execArgv: [] });
  const exit = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exit;
  });
  const [url] = (await once(child, "message")) as [string];
  const clients = connectTo(url);
  onTestFinished(clients.disconnect);
  return {
    vpn: clients.vpn,
    pid: present(child.pid),
    async readHeap(): Promise<Buffer> {
      const path = join(dataDir, "heap.heapsnapshot");
      child.send(path);
      await once(child, "message");
      return readFileSync(path);
    },
  };
}

/** A tunnel whose peer's pair the gateway made. */
async function connectMade(vpn: VpnClient) {
  const { tunnelId, privateKey } = await vpn.registerPeer({});
  const { ciphertext } = await vpn.handshake({ tunnelId });
  const secretKey = Uint8Array.from(present(privateKey));
  return { tunnelId, sessionKey: ml_kem1024.decapsulate(Uint8Array.from(ciphertext), secretKey) };
}

/** A tunnel whose peer encapsulated to the gateway. */
async function connectGiven(vpn: VpnClient) {
  const { tunnelId } = await vpn.registerPeer({ publicKey: makePeer().publicKey });
  const { sessionKey, ciphertext } = await encapsulateTo(vpn);
  await vpn.handshake({ tunnelId, ciphertext });
  return { tunnelId, sessionKey };
}

/** Of a key that is freed but not overwritten, the allocator keeps the second half. */
const halfBytes = 16;
const pageBytes = 4096;

/** Regions of a process's memory that it can write (proc(5), /proc/pid/maps). */
function listRegions(pid: number): { start: number; bytes: number }[] {
  const lines = readFileSync(`/proc/${pid}/maps`, "utf8").split("\n");
  return lines.flatMap((line) => {
    const [, start = "", end = ""] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
    const from = Number.parseInt(start, 16);
    return start === "" ? [] : [{ start: from, bytes: Number.parseInt(end, 16) - from }];
  });
}

/** Counts how often each of some keys, or its second half, stands in the memory of a process. */
function countInMemory<Name extends string>(
  pid: number,
  wanted: Record<Name, Uint8Array>,
): Record<Name, number> {
  const counts = Object.fromEntries(Object.keys(wanted).map((name) => [name, 0])) as Record<Name, number>;
  const chunk = Buffer.alloc(16 * 1024 * 1024);
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const read = (at: number, bytes: number): Buffer => {
    try {
      return chunk.subarray(0, readSync(memory, chunk, 0, bytes, at));
    } catch {
      return chunk.subarray(0, 0); // A page that is only reserved.
    }
  };
  try {
    for (const { start, bytes } of listRegions(pid)) {
      for (let done = 0; done < bytes; ) {
        const found = read(start + done, Math.min(chunk.length, bytes - done));
        for (const name in wanted) counts[name] += countIn(found, wanted[name].subarray(halfBytes));
        // What stands across two chunks is found in the second.
        done += found.length < halfBytes ? pageBytes : found.length - halfBytes + 1;
      }
    }
  } finally {
    closeSync(memory);
  }
  return counts;
}

function countIn(found: Buffer, wanted: Uint8Array): number {
  let count = 0;
  for (let at = found.indexOf(wanted); at >= 0; at = found.indexOf(wanted, at + 1)) count += 1;
  return count;
}

describe("session keys, in the process of the gateway,", { timeout: 60_000 }, () => {
  it("are in no heap snapshot: not in hexadecimal, not in base64, not as they are", async () => {
    const { vpn, readHeap } = await startGateway();
    const { tunnelId, sessionKey, decapsulate } = await connectPeer(vpn);
    const rekeyed = decapsulate((await vpn.rekey({ tunnelId })).ciphertext);
    await vpn.sendPacket({ tunnelId, data });
    const during = await readHeap();
    expect(during.includes(tunnelId), "what is alive is found").toBe(true);
    await vpn.disconnect({ tunnelId });
    const after = await readHeap();
    for (const heap of [during, after])
      for (const key of [sessionKey, rekeyed].map((bytes) => Buffer.from(bytes)))
        for (const form of [key, key.toString("hex"), key.toString("base64"), key.toString("base64url")])
          expect(heap.includes(form)).toBe(false);
  });

  it.runIf(process.platform === "linux")(
    "are in its memory until a rekey, or the end of the tunnel, and nowhere in it after that",
    async () => {
      const { vpn, pid } = await startGateway();
      const peer = await connectPeer(vpn);
      const [made, given] = [await connectMade(vpn), await connectGiven(vpn)];
      const first = { own: peer.sessionKey, made: made.sessionKey, given: given.sessionKey };
      await vpn.sendPacket({ tunnelId: peer.tunnelId, data });
      await vpn.receivePacket({ tunnelId: peer.tunnelId, packet: sealAsPeer(first.own, data) });
      const counts = Object.values(countInMemory(pid, first));
      expect(counts.map((count) => count > 0)).toEqual([true, true, true]);

      const rekeyed = peer.decapsulate((await vpn.rekey({ tunnelId: peer.tunnelId })).ciphertext);
      for (const { tunnelId } of [made, given]) await vpn.disconnect({ tunnelId });
      const { rekeyed: current, ...gone } = countInMemory(pid, { ...first, rekeyed });
      expect(current).toBeGreaterThan(0);
      expect(gone).toEqual({ own: 0, made: 0, given: 0 });

      await vpn.disconnect({ tunnelId: peer.tunnelId });
      expect(countInMemory(pid, { rekeyed })).toEqual({ rekeyed: 0 });
    },
  );
});
