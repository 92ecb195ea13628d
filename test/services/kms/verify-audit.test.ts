import { createHash, createPublicKey, verify } from "node:crypto";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Kysely } from "kysely";
import { expect, it } from "vitest";
import type { AuditCheckpoint, AuditEntry } from "#gen/kms/audit_pb.ts";
import type { Schema } from "../../../src/database/schema.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, type KmsServer } from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const zeros = "0".repeat(64);
const data = bytesOf("hello");

/** As the comment of kms.AuditEntry has it. */
function hashEntry(entry: AuditEntry, previousHash: string): string {
  const { keyId, operation, user, details, outcome, sequence, clientAddress, requestId } = entry;
  const timestamp = timestampDate(present(entry.timestamp)).toISOString();
  const members = {
    clientAddress,
    details,
    keyId,
    operation,
    outcome,
    previousHash,
    requestId,
    sequence,
    timestamp,
    user,
  };
  return createHash("sha256").update(JSON.stringify(members), "utf8").digest("hex");
}

/** Whether a checkpoint is signed, by nothing else than what it holds itself. */
function isSigned({ statement, signature, publicKeyPem }: AuditCheckpoint): boolean {
  return verify(null, bytesOf(statement), createPublicKey(publicKeyPem), signature);
}

/** A log of 6 entries. */
async function fillLog({ kms }: KmsServer): Promise<void> {
  const { keyId } = await createKey(kms);
  for (let i = 0; i < 4; i += 1) await kms.sign({ keyId, data });
  await refusal(kms.encapsulate({ keyId }));
}

describeKms("KmsService.VerifyAuditLog", (start) => {
  it("finds an empty log valid", async () => {
    const { kms } = await start();
    expect({ ...(await kms.verifyAuditLog({})) }).toEqual({
      $typeName: "kms.VerifyAuditLogResponse",
      status: "success",
      valid: true,
      entries: 0,
      head: zeros,
      reason: "",
      verifiedFrom: 1,
    });
  });

  it("finds a log valid whose hashes match the entries of GetAuditLog", async () => {
    const server = await start();
    const { kms } = server;
    await fillLog(server);
    await refusal(kms.sign({ keyId: 'quote " backslash \\ key 🔑 é \u2028 /', data }));
    const entries = await readAudit(kms);
    let previousHash = zeros;
    const hashes = entries.map((entry) => {
      previousHash = hashEntry(entry, previousHash);
      return previousHash;
    });
    expect(entries.map(({ entryHash }) => entryHash)).toEqual(hashes);
    const found = await kms.verifyAuditLog({});
    expect(found).toMatchObject({ valid: true, entries: 7, head: hashes.at(-1), reason: "" });
    expect(found.firstBrokenSequence).toBeUndefined();
  });

  it("gives a checkpoint of the end, signed with ML-DSA-65 over its statement", async () => {
    const server = await start();
    await fillLog(server);
    const { head, checkpoint: given } = await server.kms.verifyAuditLog({});
    const checkpoint = present(given);
    expect(checkpoint).toMatchObject({ sequence: 6, entryHash: head });
    const signedAt = timestampDate(present(checkpoint.signedAt)).toISOString();
    expect(checkpoint.statement).toBe(
      `{"entryHash":"${head}","purpose":"audit checkpoint","sequence":6,"signedAt":"${signedAt}"}`,
    );
    expect(isSigned(checkpoint)).toBe(true);
    expect(isSigned({ ...checkpoint, statement: checkpoint.statement.replace("6", "5") })).toBe(false);
    const outside = createPublicKey(checkpoint.publicKeyPem);
    expect(outside.asymmetricKeyType).toBe("ml-dsa-65");
    expect(new Uint8Array(outside.export({ format: "raw-public" }))).toEqual(checkpoint.publicKey);
    expect(checkpoint.signature).toHaveLength(3309);
  });

  it("signs with the same key for the life of a store, and with another for another store", async () => {
    const first = await start();
    await fillLog(first);
    const key = (await first.kms.verifyAuditLog({})).checkpoint?.publicKey;
    await first.close();
    const again = await start({ database: first.database });
    await createKey(again.kms);
    const { checkpoint } = await again.kms.verifyAuditLog({});
    expect(checkpoint).toMatchObject({ sequence: 7, publicKey: key });
    const other = await start();
    await fillLog(other);
    expect((await other.kms.verifyAuditLog({})).checkpoint?.publicKey).not.toEqual(key);
  });

  it("still finds what was broken after more was written", async () => {
    const server = await start();
    await fillLog(server);
    await server.tamper(changeEntry(2, { details: "input=mu" }));
    await createKey(server.kms);
    const { valid, firstBrokenSequence, entries } = await server.kms.verifyAuditLog({});
    expect({ valid, firstBrokenSequence, entries }).toEqual({
      valid: false,
      firstBrokenSequence: 2,
      entries: 7,
    });
  });
});

describeKms("KmsService.WatchAuditVerification", (start) => {
  it("ends with the result, over gRPC and Connect", async () => {
    const server = await start();
    await fillLog(server);
    const expected = { valid: true, entries: 6, verifiedFrom: 1 };
    for (const kms of [server.kms, server.connect]) {
      const messages = await Array.fromAsync(kms.watchAuditVerification({}));
      expect(messages.at(-1)).toMatchObject({ status: "success", entriesVerified: 6, entriesTotal: 6 });
      expect(messages.at(-1)?.result).toMatchObject({ ...expected, status: "success" });
      expect(messages.slice(0, -1).every(({ result }) => result === undefined)).toBe(true);
    }
  });

  it("names what was broken", async () => {
    const server = await start();
    await fillLog(server);
    await server.tamper(changeEntry(2, { details: "input=mu" }));
    const messages = await Array.fromAsync(server.kms.watchAuditVerification({}));
    expect(messages.at(-1)?.result).toMatchObject({ valid: false, firstBrokenSequence: 2 });
  });

  it("gives several callers at once the same result", async () => {
    const server = await start();
    await fillLog(server);
    const verdicts = await Promise.all([
      ...Array.from({ length: 20 }, async () => (await server.kms.verifyAuditLog({ full: true })).valid),
      ...Array.from({ length: 20 }, async () => (await server.kms.verifyAuditLog({})).valid),
    ]);
    expect(new Set(verdicts)).toEqual(new Set([true]));
  });
});

type Tamper = (db: Kysely<Schema>) => Promise<unknown>;

function changeEntry(sequence: number, change: object): Tamper {
  return (db) => db.updateTable("audit_entries").set(change).where("sequence", "=", sequence).execute();
}

function removeEntry(sequence: number): Tamper {
  return (db) => db.deleteFrom("audit_entries").where("sequence", "=", sequence).execute();
}

async function removeAll(db: Kysely<Schema>): Promise<void> {
  await db.deleteFrom("audit_entries").execute();
  await db.deleteFrom("audit_head").execute();
}

function changeCheckpoint(db: Kysely<Schema>): Promise<unknown> {
  return db
    .updateTable("audit_checkpoints")
    .set({ signature: new Uint8Array(3309) })
    .execute();
}

async function appendCopy(db: Kysely<Schema>): Promise<void> {
  const last = await db
    .selectFrom("audit_entries")
    .selectAll()
    .where("sequence", "=", 6)
    .executeTakeFirstOrThrow();
  await db
    .insertInto("audit_entries")
    .values({ ...last, sequence: 7 })
    .execute();
}

async function swap(db: Kysely<Schema>): Promise<void> {
  const move = (from: number, to: number) =>
    db.updateTable("audit_entries").set({ sequence: to }).where("sequence", "=", from).execute();
  await move(3, 1000);
  await move(4, 3);
  await move(1000, 4);
}

/** All that somebody can do who may write to the database, and has no key of ours. */
async function rewrite(db: Kysely<Schema>): Promise<void> {
  const rows = await db.selectFrom("audit_entries").selectAll().orderBy("sequence").execute();
  let previousHash = zeros;
  for (const row of rows) {
    const { sequence, key_id: keyId, operation, user_name: user, outcome } = row;
    const { client_address: clientAddress, request_id: requestId } = row;
    const details = sequence === 3 ? "input=mu" : row.details;
    const timestamp = new Date(row.occurred_at_ms).toISOString();
    const members = {
      clientAddress,
      details,
      keyId,
      operation,
      outcome,
      previousHash,
      requestId,
      sequence,
      timestamp,
      user,
    };
    previousHash = createHash("sha256").update(JSON.stringify(members)).digest("hex");
    await db
      .updateTable("audit_entries")
      .set({ details, entry_hash: previousHash })
      .where("sequence", "=", sequence)
      .execute();
  }
  await db.updateTable("audit_head").set({ entry_hash: previousHash }).execute();
}

async function cutOff(db: Kysely<Schema>): Promise<void> {
  await db.deleteFrom("audit_entries").where("sequence", "=", 6).execute();
  const last = await db
    .selectFrom("audit_entries")
    .selectAll()
    .where("sequence", "=", 5)
    .executeTakeFirstOrThrow();
  await db.updateTable("audit_head").set({ sequence: 5, entry_hash: last.entry_hash }).execute();
}

const tamperings: [what: string, tamper: Tamper, broken: number][] = [
  ["details were changed", changeEntry(3, { details: "input=mu" }), 3],
  ["key was changed", changeEntry(3, { key_id: "key-other" }), 3],
  ["operation was changed", changeEntry(3, { operation: "VERIFY" }), 3],
  ["user was changed", changeEntry(1, { user_name: "mallory" }), 1],
  ["outcome was changed", changeEntry(6, { outcome: "OK" }), 6],
  ["time was changed", changeEntry(3, { occurred_at_ms: 1 }), 3],
  ["client's address was changed", changeEntry(3, { client_address: "192.0.2.1" }), 3],
  ["call was changed", changeEntry(3, { request_id: "" }), 3],
  ["owner was changed", changeEntry(3, { owner: "mallory" }), 3],
  ["name of the key was changed", changeEntry(3, { key_name: "other" }), 3],
  ["time is none", changeEntry(3, { occurred_at_ms: 9_000_000_000_000_000 }), 3],
  ["hash was changed", changeEntry(3, { entry_hash: zeros }), 3],
  ["tag was changed", changeEntry(3, { entry_tag: zeros }), 3],
  ["row was removed from the beginning", removeEntry(1), 1],
  ["row was removed from the middle", removeEntry(4), 4],
  ["row was removed from the end", removeEntry(6), 6],
  ["row was put in at the end", appendCopy, 7],
  ["row changed places with the next", swap, 3],
  ["details were changed, and all hashes from there on made to fit", rewrite, 3],
  ["row was cut off the end, and the end moved to the one before", cutOff, 6],
  ["row was removed, as were all others and the end,", removeAll, 1],
  ["checkpoint has another signature", changeCheckpoint, 6],
];

describeKms("KmsService.VerifyAuditLog", (_start, shared) => {
  let filling: Promise<KmsServer> | undefined;
  const fillOnce = async (): Promise<KmsServer> => {
    const server = await shared();
    await fillLog(server);
    return server;
  };

  it.each(tamperings)("finds the first entry whose %s", async (_what, change, firstBrokenSequence) => {
    filling ??= fillOnce();
    const { kms, tamper } = await filling;
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true, entries: 6 });
    const before = await copyLog(tamper);
    await tamper(change);
    const answer = await kms.verifyAuditLog({});
    await tamper(before.restore);
    expect(answer).toMatchObject({ status: "success", valid: false, firstBrokenSequence });
    expect(answer.reason).not.toBe("");
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true, entries: 6 });
  });
});

/** Keeps the log as it is, to put it back. */
async function copyLog(tamper: KmsServer["tamper"]): Promise<{ readonly restore: Tamper }> {
  const tables = ["audit_entries", "audit_head", "audit_checkpoints"] as const;
  const rows = new Map<string, object[]>();
  await tamper(async (db) => {
    for (const table of tables) rows.set(table, await db.selectFrom(table).selectAll().execute());
  });
  return {
    async restore(db) {
      for (const table of tables) {
        await db.deleteFrom(table).execute();
        await db
          .insertInto(table)
          .values(present(rows.get(table)) as never)
          .execute();
      }
    },
  };
}
