/** Session keys in the gateway's memory, and the rekey limit after a million packets. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { bytesOf } from "../support/bytes.ts";
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

/** Starts the app in its own process, so that tests can inspect its memory. */
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

/** The allocator keeps the second half of a key that is freed but not overwritten. */
const halfBytes = 16;
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

/** Counts how often each key, or its second half, occurs in a process's memory. */
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
        for (const name in wanted) counts[name] += countIn(found, wanted[name].subarray(halfBytes));
        // A match that spans two chunks is found in the second.
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

describe("session keys in the gateway process", { timeout: 180_000 }, () => {
  it("are in no heap snapshot, whether in hexadecimal, base64 or raw", async () => {
    const { vpn, readHeap } = await startGateway();
    const { tunnelId, sessionKey, decapsulate } = await connectPeer(vpn);
    const rekeyed = decapsulate((await vpn.rekey({ tunnelId })).ciphertext);
    await vpn.sendPacket({ tunnelId, data });
    const during = await readHeap();
    expect(during.includes(tunnelId), "live data is found").toBe(true);
    await vpn.disconnect({ tunnelId });
    const after = await readHeap();
    for (const heap of [during, after])
      for (const key of [sessionKey, rekeyed].map((bytes) => Buffer.from(bytes)))
        for (const form of [key, key.toString("hex"), key.toString("base64"), key.toString("base64url")])
          expect(heap.includes(form)).toBe(false);
  });

  it.runIf(process.platform === "linux")(
    "are in its memory until a rekey or the end of the tunnel, and nowhere after that",
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
