import { expect, it, onTestFinished, vi } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { describePostgres } from "../../support/postgres.ts";
import { startPostgres } from "../../support/postgres-server.ts";
import { refusal } from "../../support/refusal.ts";
import { createKey, databaseAt, startKmsServer } from "./kms-server.ts";

const timeout = 180_000;
const data = bytesOf("hello");

// test/faults/postgres-down.slow.test.ts makes every call.
describePostgres("kms.KmsService during and after a PostgreSQL outage", () => {
  it("signs again with a key whose secret half it could not read during the outage", {
    timeout,
  }, async () => {
    const postgres = await startPostgres({ durable: false });
    onTestFinished(() => postgres.close());
    const { kms } = await startKmsServer({ database: databaseAt(await postgres.createDatabase()) });
    const { keyId } = await createKey(kms);
    // At this point, its record is known, but not its secret half.
    await kms.verify({ keyId, data, signature: new Uint8Array(2420) });
    await postgres.stop();
    const unavailable = { code: "Unavailable", reason: "STORE_UNAVAILABLE" };
    expect(await refusal(kms.sign({ keyId, data }))).toEqual(unavailable);
    await postgres.start();
    const isUp = async () => expect((await kms.getHealth({})).serviceStatus).toBe("UP");
    await vi.waitFor(isUp, { timeout: 120_000 });
    expect(await kms.sign({ keyId, data })).toMatchObject({ status: "success" });
  });
});
