import { describe, expect, it, vi } from "vitest";
import { WorkQueue } from "../../../src/crypto/work-queue.ts";
import { sqliteIn } from "../../../src/database/database.ts";
import { masterKeyIn } from "../../../src/secrets/master-key.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { createKey, startKmsServer } from "./kms-server.ts";

const data = bytesOf("message");

describe("KmsService, while another caller signs with SLH-DSA,", { timeout: 180_000 }, () => {
  it("signs with ML-DSA during a batch, which ends when its caller disconnects", async () => {
    const queue = new WorkQueue({ threads: 2, maxWaitMs: 1000, maxBacklogMs: 10_000 });
    const directory = makeTemporaryDirectory();
    const database = { location: sqliteIn(directory), masterKey: masterKeyIn(directory) };
    const { kms, connect } = await startKmsServer({ database, queue });
    const slow = await createKey(kms, { algorithm: "SLH-DSA-SHA2-128s" });
    const quick = await createKey(connect);
    // Opens the key, so that the batch only signs.
    await kms.sign({ keyId: slow.keyId, data });
    const call = new AbortController();
    const batch = refusal(
      kms.batchSign({ keyId: slow.keyId, data: Array(30).fill(data) }, { signal: call.signal }),
    );
    await vi.waitUntil(() => queue.depth > 0, { timeout: 100_000, interval: 1 });

    const signing = Array.from({ length: 20 }, () => connect.sign({ keyId: quick.keyId, data }));
    const signed = await Promise.all(signing);
    expect(signed.map(({ result }) => result?.algorithm)).toEqual(Array(20).fill("ML-DSA-44"));
    expect(queue.depth).toBe(1);

    call.abort();
    expect(await batch).toMatchObject({ code: "Canceled" });
    await vi.waitUntil(() => queue.depth === 0, { timeout: 100_000, interval: 10 });
  });
});
