import { expect, it, onTestFinished, vi } from "vitest";
import { bytesOf } from "../../support/bytes.ts";
import { describePostgres } from "../../support/postgres.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { refusal } from "../../support/refusal.ts";
import { createKey, databaseAt, type KmsServer, startKmsServer } from "./kms-server.ts";

const timeout = 180_000;
const data = bytesOf("hello");
const unavailable = { code: "Unavailable", reason: "STORE_UNAVAILABLE" };

/** Starts a server with its own PostgreSQL server. */
async function startBoth(): Promise<KmsServer & { readonly postgres: PostgresServer }> {
  const postgres = await startPostgres({ durable: false });
  onTestFinished(() => postgres.close());
  const server = await startKmsServer({ database: databaseAt(await postgres.createDatabase()) });
  return { ...server, postgres };
}

async function bringBack({ postgres, kms }: Awaited<ReturnType<typeof startBoth>>): Promise<void> {
  await postgres.start();
  await vi.waitFor(async () => expect((await kms.getHealth({})).serviceStatus).toBe("UP"), {
    timeout: 120_000,
  });
}

describePostgres("kms.KmsService during and after a PostgreSQL outage", () => {
  it("is DOWN without a key count, then UP again", { timeout }, async () => {
    const server = await startBoth();
    const { kms, postgres, rest } = server;
    await createKey(kms);
    await postgres.stop();
    const down = { status: "success", serviceStatus: "DOWN" };
    const { $typeName: _, ...health } = await kms.getHealth({});
    expect(health).toEqual(down);
    expect(await rest("GET /api/kms/health")).toMatchObject({
      status: 200,
      text: `${JSON.stringify(down)}\n`,
    });
    await bringBack(server);
    expect(await kms.getHealth({})).toMatchObject({ serviceStatus: "UP", keyCount: 1 });
  });

  it("answers no call, then every call again", { timeout }, async () => {
    const server = await startBoth();
    const { kms, postgres } = server;
    const { keyId } = await createKey(kms);
    await kms.sign({ keyId, data });
    const calls = () => [
      kms.createKey({}),
      kms.getKey({ keyId }),
      kms.listKeys({}),
      kms.sign({ keyId, data }),
      kms.batchSign({ keyId, data: [data] }),
      kms.verify({ keyId, data, signature: new Uint8Array(2420) }),
      kms.getAuditLog({}),
      kms.verifyAuditLog({}),
    ];
    await postgres.stop();
    expect(await Promise.all(calls().map(refusal))).toEqual(Array(8).fill(unavailable));
    await bringBack(server);
    const answers = await Promise.all(calls());
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill("success"));
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true });
  });

  it("signs again with a key whose secret half it could not read during the outage", {
    timeout,
  }, async () => {
    const server = await startBoth();
    const { kms, postgres } = server;
    const { keyId } = await createKey(kms);
    // At this point, its record is known, but not its secret half.
    await kms.verify({ keyId, data, signature: new Uint8Array(2420) });
    await postgres.stop();
    expect(await refusal(kms.sign({ keyId, data }))).toEqual(unavailable);
    await bringBack(server);
    const { keyId: other } = await createKey(kms);
    expect(await kms.sign({ keyId: other, data })).toMatchObject({ status: "success" });
    expect(await kms.sign({ keyId, data })).toMatchObject({ status: "success" });
  });
});
