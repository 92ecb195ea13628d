/** Session keys in the gateway's memory, and the rekey limit after a million packets. */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { bytesOf } from "../support/bytes.ts";
import { startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { present } from "./answers.ts";
import { connectTo } from "./devices-and-tunnels.ts";
import { openSession, outcomeOf, sealed } from "./open-session.ts";
import { connectGiven, connectMade, connectPeer, openAsPeer, sealAsPeer } from "./vpn-peer.ts";

const data = bytesOf("the quick brown fox");

describe("Session", () => {
  it("rejects packets after 1,000,000, but still seals", { timeout: 600_000 }, () => {
    const { session, sessionKey } = openSession();
    const vector = Buffer.alloc(12);
    for (let i = 0; i < 10; i++) {
      vector.writeUInt32BE(i);
      if (!session.open(sealAsPeer(sessionKey, data, vector)).ok) throw new Error(`packet ${i} is refused`);
    }
    expect(session.received.size).toBe(10);
    // The window counts nonces; sealing and opening so many packets would take a minute.
    for (let i = 10; i < 1_000_000; i++) session.received.add(`packet ${i}`);
    expect(outcomeOf(session.open(sealAsPeer(sessionKey, data)))).toBe("REKEY_NEEDED");
    vector.writeUInt32BE(5);
    expect(outcomeOf(session.open(sealAsPeer(sessionKey, data, vector)))).toBe("PACKET_REPLAYED");
    expect(openAsPeer(sessionKey, sealed(session, data))).toEqual(data);
  });
});

/** Starts the program, whose memory tests can inspect. */
async function startGateway() {
  const server = await startServer({ dataDir: makeTemporaryDirectory() });
  onTestFinished(async () => void (await server.stop("SIGKILL")));
  const { vpn, disconnect } = connectTo(server.url);
  onTestFinished(disconnect);
  return { vpn, pid: present(server.process.pid) };
}

/** Returns the part of a key that the allocator keeps if the key is freed but not overwritten. */
const halfOf = (key: Uint8Array) => Buffer.from(key.subarray(16));
/** Returns a key as text, which could not be overwritten. */
const textsOf = (key: Uint8Array) =>
  Object.fromEntries(
    (["hex", "base64", "base64url"] as const).map((form) => [
      form,
      Buffer.from(Buffer.from(key).toString(form)),
    ]),
  );
/** Bytes of the longest pattern: a key in hexadecimal. */
const longestBytes = 64;
const pageBytes = 4096;

/** Lists the writable regions of a process's memory (proc(5), /proc/pid/maps). */
function listRegions(pid: number): { start: number; bytes: number }[] {
  const lines = readFileSync(`/proc/${pid}/maps`, "utf8").split("\n");
  return lines.flatMap((line) => {
    const [, start = "", end = ""] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
    const from = Number.parseInt(start, 16);
    return start === "" ? [] : [{ start: from, bytes: Number.parseInt(end, 16) - from }];
  });
}

/** Counts how often each pattern occurs in a process's memory. */
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
      return chunk.subarray(0, 0); // A reserved page without content.
    }
  };
  try {
    for (const { start, bytes } of listRegions(pid)) {
      for (let done = 0; done < bytes; ) {
        const found = read(start + done, Math.min(chunk.length, bytes - done));
        for (const name in wanted) counts[name] += countIn(found, wanted[name]);
        // A match that spans two chunks is found in the second.
        done += found.length < longestBytes ? pageBytes : found.length - longestBytes + 1;
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

describe("session keys in the gateway process", { timeout: 180_000 }, () => {
  it.runIf(process.platform === "linux")(
    "are in its memory, but not as text, until a rekey or the end of the tunnel, and nowhere after that",
    async () => {
      const { vpn, pid } = await startGateway();
      const peer = await connectPeer(vpn);
      const [made, given] = [await connectMade(vpn), await connectGiven(vpn)];
      const first = {
        own: halfOf(peer.sessionKey),
        made: halfOf(made.sessionKey),
        given: halfOf(given.sessionKey),
      };
      await vpn.sendPacket({ tunnelId: peer.tunnelId, data });
      await vpn.receivePacket({ tunnelId: peer.tunnelId, packet: sealAsPeer(peer.sessionKey, data) });
      const counts = Object.values(countInMemory(pid, first));
      expect(counts.map((count) => count > 0)).toEqual([true, true, true]);
      const texts = textsOf(peer.sessionKey);
      expect(countInMemory(pid, texts)).toEqual({ hex: 0, base64: 0, base64url: 0 });

      const rekeyed = halfOf(peer.decapsulate((await vpn.rekey({ tunnelId: peer.tunnelId })).ciphertext));
      for (const { tunnelId } of [made, given]) await vpn.disconnect({ tunnelId });
      const { rekeyed: current, ...gone } = countInMemory(pid, { ...first, rekeyed });
      expect(current).toBeGreaterThan(0);
      expect(gone).toEqual({ own: 0, made: 0, given: 0 });

      await vpn.disconnect({ tunnelId: peer.tunnelId });
      expect(countInMemory(pid, { rekeyed })).toEqual({ rekeyed: 0 });
    },
  );
});
