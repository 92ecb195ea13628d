/** Memory of the program during work many times larger than what it may keep. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomFillSync } from "node:crypto";
import { once } from "node:events";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { callRest, present } from "../services/answers.ts";
import { connectTo } from "../services/devices-and-tunnels.ts";
import { createKey, verifiesOutside } from "../services/kms/kms-server.ts";
import { makeSigner } from "../services/node-crypto.ts";
import { type AtEnd, endAfterAll } from "../support/at-end.ts";
import { type Memory, readMemory } from "../support/process-usage.ts";
import { main } from "../support/program.ts";
import { startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { startKmsServer } from "./kms-server.ts";

const mebibyte = 1024 * 1024;
const chainLength = 30_000;
/** In milliseconds. */
const timeout = 900_000;
/** /proc/pid/status exists only on Linux. */
const isLinux = process.platform === "linux";
/**
 * Allowed growth above the roughly steady state, in MiB. Memory never stands still: up to 80 MiB of garbage accumulate
 * on a busy machine before a collection. The data that passes after the steady state is at least 170 MiB (half of a
 * chain; 704 MiB in a stream), so code that keeps the data is found.
 */
const maxGrownMebibytes = 128;

/**
 * The same for hundreds of MiB: a machine with other work has shown 180 MiB of garbage. Code that keeps the data grows by
 * at least 704 MiB.
 */
const maxGrownOfMuch = 384;

/** Without the flags of this process: the 64 MiB nursery of `npm start` takes long to fill. */
const env = { NODE_OPTIONS: "" };

type Annotate = (message: string) => Promise<unknown>;

/** Returns by how many MiB the peak exceeds the earlier size, and annotates the test with all figures. */
async function growthOf(before: Memory, after: Memory, annotate: Annotate): Promise<number> {
  const show = (bytes: number) => `${Math.round(bytes / mebibyte)} MiB`;
  const grownBytes = after.mostBytes - before.nowBytes;
  await annotate(
    `${show(before.nowBytes)} when steady, ${show(after.nowBytes)} at the end, ${show(after.mostBytes)} at most: ` +
      `grown by ${show(grownBytes)}`,
  );
  return grownBytes / mebibyte;
}

/** Measures from the moment that the test calls steady. */
function createGauge(child: ChildProcess, annotate: Annotate) {
  let before: Memory | undefined;
  return {
    /** Has no effect when called again. */
    begin(): void {
      before ??= readMemory(child);
    },
    grownMebibytes: () => growthOf(present(before), readMemory(child), annotate),
  };
}

/** Measures work that shows no progress: over the second half of its duration. */
function startSampling(child: ChildProcess, annotate: Annotate) {
  const samples: Memory[] = [];
  const timer = setInterval(
    () => samples.push(...[readMemory(child)].filter(({ mostBytes }) => mostBytes > 0)),
    20,
  );
  const stop = () => clearInterval(timer);
  child.once("exit", stop);
  return {
    async grownMebibytes(): Promise<number> {
      stop();
      return growthOf(present(samples[samples.length >> 1]), present(samples.at(-1)), annotate);
    },
  };
}

describe.runIf(isLinux)("a stream of 768 MiB (on Linux)", { timeout }, () => {
  let message: Uint8Array<ArrayBuffer>;
  beforeAll(() => {
    message = randomFillSync(new Uint8Array(768 * mebibyte));
  });

  /** A header, and the message in pieces of 1 MiB. */
  async function* partsOf<Header>(header: Header, after64Mebibytes: () => void) {
    yield { part: { case: "header" as const, value: header } };
    for (let at = 0; at < message.length; at += mebibyte) {
      if (at === 64 * mebibyte) after64Mebibytes();
      yield { part: { case: "chunk" as const, value: message.subarray(at, at + mebibyte) } };
    }
  }

  it("is not kept by UpdateFirmwareStream, which returns its hash", async ({ annotate }) => {
    const { url, process: child, stop } = await startServer({ dataDir: makeTemporaryDirectory(), env });
    const { iot, disconnect } = connectTo(url);
    onTestFinished(async () => {
      disconnect();
      await stop("SIGKILL");
    });
    const digest = createHash("sha256").update(message).digest();
    const vendor = makeSigner("ml-dsa-87");
    const header = { vendorPublicKey: vendor.publicKey, signature: vendor.sign(digest) };
    const gauge = createGauge(child, annotate);
    expect(await iot.updateFirmwareStream(partsOf(header, gauge.begin))).toMatchObject({
      result: "FIRMWARE_ACCEPTED",
      firmwareHash: digest.toString("hex"),
    });
    expect(await gauge.grownMebibytes()).toBeLessThan(maxGrownOfMuch);
  });

  it("is not kept by SignStream, which returns its signature", async ({ annotate }) => {
    const { kms, process: child } = await startKmsServer({ dataDir: makeTemporaryDirectory(), env });
    const key = await createKey(kms);
    const gauge = createGauge(child, annotate);
    const { result } = await kms.signStream(partsOf({ keyId: key.keyId }, gauge.begin));
    expect(await gauge.grownMebibytes()).toBeLessThan(maxGrownOfMuch);
    expect(verifiesOutside(key, message, present(result).signature)).toBe(true);
  });
});

describe.runIf(isLinux)("a chain of 30,000 blocks of 8 KiB (on Linux)", { timeout }, () => {
  const atEnd = endAfterAll();
  let dataDir: string;
  beforeAll(async () => {
    dataDir = makeTemporaryDirectory(atEnd);
    await makeChain(dataDir, chainLength, 8192);
  }, timeout);

  it("is not kept when read by pages over REST", async ({ annotate }) => {
    const { url, child } = await start(dataDir);
    const gauge = createGauge(child, annotate);
    let [count, pageToken] = [0, ""];
    do {
      const query = new URLSearchParams({ pageToken });
      const { json } = await callRest(url, `GET /api/blockchain/chain?${query}`);
      const page = json as { readonly blocks: readonly unknown[]; readonly nextPageToken: string };
      count += page.blocks.length;
      if (count > chainLength / 4) gauge.begin();
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(count).toBe(chainLength);
    expect(await gauge.grownMebibytes()).toBeLessThan(maxGrownMebibytes);
  });

  it("is not kept when watched from genesis", async ({ annotate }) => {
    const { url, child, chain } = await start(dataDir);
    const gauge = createGauge(child, annotate);
    await watchersOf(url, chain).watch(chainLength, (length) => length > chainLength / 4 && gauge.begin());
    expect(await gauge.grownMebibytes()).toBeLessThan(maxGrownMebibytes);
  });

  it("is not kept by VerifyChain", async ({ annotate }) => {
    const { child, chain } = await start(dataDir);
    const memory = startSampling(child, annotate);
    expect(await chain.verifyChain({})).toMatchObject({ valid: true, blocksChecked: chainLength });
    expect(await memory.grownMebibytes()).toBeLessThan(maxGrownMebibytes);
  });

  it("is not kept by the command that verifies it", async ({ annotate }) => {
    const child = spawn(process.execPath, [main, "chain", "verify", "--data-dir", dataDir], {
      env: { ...process.env, ...env },
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const closed = once(child, "close");
    // Starts at the first progress line, so that half of the time is half of the chain.
    await once(child.stderr, "data");
    const memory = startSampling(child, annotate);
    child.stderr.resume();
    child.stdout.resume();
    expect(await closed).toEqual([0, null]);
    expect(await memory.grownMebibytes()).toBeLessThan(maxGrownMebibytes);
  });
});

describe.runIf(isLinux)("a chain of 1,000 blocks of 64 KiB (on Linux)", { timeout }, () => {
  it("is not kept for each watcher who reads nothing", async ({ annotate }) => {
    const dataDir = makeTemporaryDirectory();
    const length = 1000;
    await makeChain(dataDir, length, 65_536);
    const { url, child, chain } = await start(dataDir);
    const { watch, watchUntaken } = watchersOf(url, chain);
    await watch(length);
    const gauge = createGauge(child, annotate);
    gauge.begin();
    // 2 GiB, if each had a copy.
    const watchers = 32;
    for (let i = 0; i < watchers; i++) await watchUntaken();
    // Reads are sequential, so the reads for the other watchers have finished once this one has.
    await watch(length);
    expect(await gauge.grownMebibytes()).toBeLessThan(maxGrownOfMuch);
  });
});

async function start(dataDir: string, atEnd: AtEnd = onTestFinished) {
  const args = ["--max-call-ms", String(timeout), "--max-calls-per-second", "0"];
  const { url, process: child, stop } = await startServer({ dataDir, args, env });
  atEnd(async () => void (await stop("SIGKILL")));
  return { url, child, stop, chain: createClient(BlockchainService, createGrpcTransport({ baseUrl: url })) };
}

/** Watchers of a chain, until the test ends. */
function watchersOf(url: string, chain: Client<typeof BlockchainService>) {
  const controller = new AbortController();
  const { signal } = controller;
  onTestFinished(() => controller.abort());
  return {
    /** Reads a number of blocks, and reports the count after each. */
    async watch(length: number, onBlock: (length: number) => void = () => {}): Promise<void> {
      let count = 0;
      for await (const _ of chain.watchBlocks({ fromIndex: 0 }, { signal })) {
        count += 1;
        onBlock(count);
        if (count === length) return;
      }
    },
    /** Watches from genesis over REST, and reads nothing of the answer. */
    async watchUntaken(): Promise<void> {
      expect((await fetch(`${url}/api/blockchain/chain/watch`, { signal })).status).toBe(200);
    },
  };
}

/** Creates a chain of a single validator, with this length, including genesis. */
async function makeChain(dataDir: string, length: number, dataBytes: number): Promise<void> {
  const { chain, stop } = await start(dataDir, () => {});
  await chain.registerNode({});
  let added = 1;
  const add = async (): Promise<void> => {
    while (added++ < length) await chain.addBlock({ data: Buffer.alloc(dataBytes, `block ${added} `) });
  };
  await Promise.all(Array.from({ length: 32 }, add));
  await stop();
}
