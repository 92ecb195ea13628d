import { beforeAll, describe, expect, it } from "vitest";
import { isMissing } from "../interop/tools.ts";
import { present } from "../services/answers.ts";
import { endAfterAll } from "../support/at-end.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type KmsClient, startKmsServer } from "./kms-server.ts";
import { type Trace, traceSyncs } from "./strace.ts";

const calls = 10;
const data = Buffer.from("message");

const title = isMissing("strace") ? "needs strace, which is not installed" : "on SQLite";
describe.skipIf(isMissing("strace"))(`an answer of the key service, ${title}`, () => {
  const atEnd = endAfterAll();
  let log: string;
  let kms: KmsClient;
  let trace: Trace;
  beforeAll(async () => {
    const dataDir = makeTemporaryDirectory(atEnd);
    const server = await startKmsServer({ dataDir }, atEnd);
    log = `${dataDir}/qsp.db-wal`;
    kms = server.kms;
    trace = await traceSyncs(present(server.process.pid), makeTemporaryDirectory(atEnd), atEnd);
  }, 180_000);

  /** Counts syncs of the write-ahead log during a call. */
  const countSyncs = async (call: () => Promise<unknown>): Promise<number> => {
    const before = trace.countSyncs(log);
    await call();
    return trace.countSyncs(log) - before;
  };
  /** Counts the same over consecutive calls, each with a new key. */
  const countSyncsOfEach = async (call: (keyId: string) => Promise<unknown>): Promise<number[]> => {
    const counts: number[] = [];
    for (let i = 0; i < calls; i += 1) {
      const keyId = await createKey();
      counts.push(await countSyncs(() => call(keyId)));
    }
    return counts;
  };
  const createKey = async (): Promise<string> =>
    present((await kms.createKey({ algorithm: "ML-DSA-44" })).result).keyId;

  const writing: [string, (keyId: string) => Promise<unknown>][] = [
    ["CreateKey", createKey],
    ["RotateKey", (keyId) => kms.rotateKey({ keyId })],
    ["DestroyKey", (keyId) => kms.destroyKey({ keyId })],
    ["Sign", (keyId) => kms.sign({ keyId, data })],
    ["BatchSign", (keyId) => kms.batchSign({ keyId, data: [data, data] })],
    ["Verify", (keyId) => kms.verify({ keyId, data, signature: Buffer.alloc(2420) })],
    // The first refusal of its kind: repeated ones are counted in memory.
    ["a rejected Sign", (keyId) => kms.sign({ keyId: `${keyId}-unknown`, data }).catch(() => {})],
  ];
  it.each(writing)("comes after a log sync: %s", async (_rpc, call) => {
    expect(Math.min(...(await countSyncsOfEach(call)))).toBeGreaterThanOrEqual(1);
  });

  it("needs no sync for reads: GetKey", async () => {
    expect(Math.min(...(await countSyncsOfEach((keyId) => kms.getKey({ keyId }))))).toBe(0);
  });

  it("comes after a sync that concurrent calls may share", async () => {
    const keyId = await createKey();
    const callers = 64;
    let each: number[] = [];
    const all = await countSyncs(async () => {
      const answers = Array.from({ length: callers }, () => countSyncs(() => kms.sign({ keyId, data })));
      each = await Promise.all(answers);
    });
    expect(Math.min(...each)).toBeGreaterThanOrEqual(1);
    expect(all).toBeLessThan(callers);
  });
});
