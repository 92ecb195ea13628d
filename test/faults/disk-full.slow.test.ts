import { join } from "node:path";
import { beforeAll, expect, it, vi } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { refusal } from "../support/refusal.ts";
import { runToEnd } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { createEvidence, createWitness, type Evidence, type Failure, present } from "./evidence.ts";
import { findContradictions } from "./judge.ts";
import { type KmsClient, type KmsServer, startKmsServer } from "./kms-server.ts";
import { startLoad } from "./load.ts";
import { createRandom } from "./mutations.ts";
import { describeSmallDisks, makeSmallDisk, writeForeignFile } from "./small-disk.ts";

const timeout = 180_000;
const full = { code: "ResourceExhausted", reason: "STORE_FULL" };
const data = Buffer.from("message");

/** A store on a small disk, with what is known of it. */
interface SmallStore {
  readonly directory: string;
  readonly server: KmsServer;
  readonly evidence: Evidence;
}

describeSmallDisks("a store on a full disk", () => {
  it.each(["2m", "12m"])(
    "refuses keys as STORE_FULL when they fill it, and takes more when there is room (disk of %s)",
    { timeout },
    async (size) => {
      const directory = makeSmallDisk(size);
      const foreign = writeForeignFile(directory, 512 * 1024);
      const store = await openStore(directory);
      expect(await createUntilRefused(store)).toEqual(new Set([JSON.stringify(full)]));
      foreign.remove();
      await expectGoesOn(store);
    },
  );

  it("refuses all that writes when a foreign file fills it under load, until that is gone", {
    timeout,
  }, async () => {
    const store = await openStore(makeSmallDisk("4m"));
    const { failures } = store.evidence;
    const load = startLoadOn(store);
    await load.answers(50);
    const foreign = writeForeignFile(store.directory);
    await vi.waitUntil(() => failures.length > 50, timeout);
    foreign.remove();
    await load.answers(50);
    await load.stop();
    expect(kindsOf(failures)).toEqual(new Set([JSON.stringify(full)]));
    await expectGoesOn(store);
  });

  it("keeps what was acknowledged when the program is killed with -9 on it, and starts when there is room", {
    timeout,
  }, async () => {
    const store = await openStore(makeSmallDisk("4m"));
    const load = startLoadOn(store);
    await load.answers(50);
    const foreign = writeForeignFile(store.directory);
    await vi.waitUntil(() => store.evidence.failures.length > 50, timeout);
    await Promise.all([store.server.stop("SIGKILL"), load.stop()]);
    foreign.remove();
    await expectGoesOn({ ...store, server: await startKmsServer({ dataDir: store.directory }) });
  });

  it("lets the program start, and write when there is room", { timeout }, async () => {
    const store = await openStore(makeSmallDisk("4m"));
    const load = startLoadOn(store);
    await load.answers(50);
    const foreign = writeForeignFile(store.directory);
    await Promise.all([store.server.stop("SIGKILL"), load.stop()]);
    const server = await startKmsServer({ dataDir: store.directory });
    expect(await server.kms.getHealth({})).toMatchObject({ serviceStatus: "UP" });
    expect(await refusal(server.kms.createKey({}))).toEqual(full);
    foreign.remove();
    await expectGoesOn({ ...store, server });
  });

  // With no room, SQLite cannot write the file; with 8 KiB, it cannot map the index of its log; then it cannot migrate.
  it.each([0, 8192, 40_960])(
    "cannot be made there, which the program says in one line (%i bytes of room)",
    { timeout },
    async (bytes) => {
      const directory = makeSmallDisk("1m");
      writeForeignFile(directory, 1024 * 1024 - bytes);
      // A service manager starts it again, which it does not do after code 2.
      expect(await runToEnd(["serve", "--port", "0", "--data-dir", directory])).toMatchObject({
        code: 4,
        stderr: `qsp: the disk of ${join(directory, "qsp.db")} is full; make room on it\n`,
      });
    },
  );

  it("cannot be made if there is no room for the master key", { timeout }, async () => {
    const [directory, dataDir] = [makeSmallDisk("64k"), makeTemporaryDirectory()];
    writeForeignFile(directory);
    const masterKey = join(directory, "master.key");
    const args = ["serve", "--port", "0", "--data-dir", dataDir, "--master-key-file", masterKey];
    expect(await runToEnd(args)).toMatchObject({
      code: 4,
      stderr: `qsp: the disk of ${masterKey} is full; make room on it\n`,
    });
  });
});

describeSmallDisks("the key service with a store on a full disk", () => {
  let kms: KmsClient;
  let url: string;
  let keyId = "";
  let kemKeyId = "";
  const atEnd = endAfterAll();
  beforeAll(async () => {
    const directory = makeSmallDisk("2m", atEnd);
    ({ kms, url } = await startKmsServer({ dataDir: directory }, atEnd));
    keyId = present((await kms.createKey({ alias: "for signing", algorithm: "ML-DSA-44" })).result).keyId;
    kemKeyId = present((await kms.createKey({ algorithm: "ML-KEM-512" })).result).keyId;
    writeForeignFile(directory);
  });

  const reading: [string, () => Promise<unknown>, object][] = [
    ["GetKey", () => kms.getKey({ keyId }), { result: { alias: "for signing" } }],
    ["ListKeys", () => kms.listKeys({}), { totalSize: 2 }],
    ["GetAuditLog", () => kms.getAuditLog({}), { totalSize: 2 }],
    ["GetHealth", () => kms.getHealth({}), { serviceStatus: "UP", keyCount: 2 }],
    ["VerifyAuditLog", () => kms.verifyAuditLog({}), { valid: true, entries: 2 }],
  ];
  it.each(reading)("answers %s", async (_rpc, call, answer) => {
    expect(await call()).toMatchObject(answer);
  });

  const writing: [string, () => Promise<unknown>][] = [
    ["CreateKey", () => kms.createKey({})],
    ["CreateKey with an idempotency key", () => kms.createKey({}, { headers: { "idempotency-key": "1" } })],
    ["RotateKey", () => kms.rotateKey({ keyId })],
    ["DestroyKey", () => kms.destroyKey({ keyId })],
    ["Sign", () => kms.sign({ keyId, data })],
    ["SignStream", () => kms.signStream(streamOf(keyId))],
    ["BatchSign", () => kms.batchSign({ keyId, data: [data, data] })],
    ["Verify", () => kms.verify({ keyId, data, signature: Buffer.alloc(2420) })],
    ["Encapsulate", () => kms.encapsulate({ keyId: kemKeyId })],
    ["Decapsulate", () => kms.decapsulate({ keyId: kemKeyId, ciphertext: Buffer.alloc(768) })],
    ["a Sign that it would refuse anyway", () => kms.sign({ keyId: "key-unknown", data })],
  ];
  it.each(writing)(
    "refuses %s as STORE_FULL, since its audit entry cannot be written",
    async (_rpc, call) => {
      expect(await refusal(call())).toEqual(full);
    },
  );

  it("says so over REST with 429 and RESOURCE_EXHAUSTED", async () => {
    const response = await fetch(`${url}/api/kms/create-key`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(response.status).toBe(429);
    expect(await response.json()).toMatchObject({
      status: "error",
      code: "RESOURCE_EXHAUSTED",
      details: [{ reason: "STORE_FULL" }],
    });
  });
});

async function openStore(directory: string): Promise<SmallStore> {
  return {
    directory,
    server: await startKmsServer({ dataDir: directory }),
    evidence: createEvidence(),
  };
}

function startLoadOn({ server, evidence }: SmallStore) {
  return startLoad({ evidence, servers: [server], random: createRandom(20261123) });
}

/** @returns the kinds of refusals that there were when there had been many */
async function createUntilRefused({ server, evidence }: SmallStore): Promise<Set<string>> {
  const witness = createWitness(evidence, server.kms);
  let count = 0;
  const create = async (): Promise<void> => {
    while (evidence.failures.length < 200) {
      count += 1;
      await witness.create({ alias: `key ${count}`, algorithm: "ML-DSA-44" });
    }
  };
  await Promise.all(Array.from({ length: 16 }, create));
  return kindsOf(evidence.failures);
}

function kindsOf(failures: readonly Failure[]): Set<string> {
  return new Set(failures.map(({ code, reason }) => JSON.stringify({ code, reason })));
}

/** The program lives, works, and has all that it acknowledged. */
async function expectGoesOn({ server, evidence }: SmallStore): Promise<void> {
  const witness = createWitness(evidence, server.kms);
  expect(await witness.create({ alias: "the first with room", algorithm: "ML-DSA-44" })).toBe(true);
  expect(await findContradictions(evidence, server.kms)).toEqual([]);
}

async function* streamOf(keyId: string) {
  yield { part: { case: "header", value: { keyId } } } as const;
  yield { part: { case: "chunk", value: data } } as const;
}
