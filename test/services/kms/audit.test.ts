import { createHash } from "node:crypto";
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Kysely } from "kysely";
import { expect, it } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { Schema } from "../../../src/database/schema.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, type KmsClient, readDeeds, sign, withKey } from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";
import { signParts } from "./sign-parts.ts";

const data = bytesOf("attack at dawn");
const damaged = { code: "DataLoss", reason: "STORE_DAMAGED" };

/** Computes the hash as the comment of kms.AuditEntry specifies. */
function hashEntry(entry: AuditEntry, previousHash: string): string {
  const { keyId, operation, user, details, outcome, sequence, clientAddress, requestId } = entry;
  const timestamp = timestampDate(present(entry.timestamp)).toISOString();
  const members = {
    ...{ clientAddress, details, keyId, operation, outcome, previousHash, requestId, sequence, timestamp },
    user,
  };
  return createHash("sha256").update(JSON.stringify(members), "utf8").digest("hex");
}

/** Changes an entry without the service's knowledge. */
function changeEntry(sequence: number, change: object) {
  return (db: Kysely<Schema>): Promise<unknown> =>
    db.updateTable("audit_entries").set(change).where("sequence", "=", sequence).execute();
}

/** Uses keys in every possible way; returns the data that must not leak. */
async function useEverything(kms: KmsClient) {
  const { keyId } = await createKey(kms);
  const context = bytesOf("a context that is nobody's business");
  const signature = await sign(kms, { keyId, data, context });
  const streamed = present((await kms.signStream(signParts(keyId, data))).result).signature;
  const { results } = await kms.batchSign({ keyId, data: [data] });
  await kms.verify({ keyId, data, signature, context });
  await kms.verify({ keyId, data, signature });
  const newKeyId = present((await kms.rotateKey({ keyId })).newKey).keyId;
  await kms.destroyKey({ keyId });
  const { keyId: kemKeyId } = await createKey(kms, { algorithm: "ML-KEM-512" });
  const { ciphertext, sharedSecret } = present((await kms.encapsulate({ keyId: kemKeyId })).result);
  await kms.decapsulate({ keyId: kemKeyId, ciphertext });
  const batched = present(results[0]?.signature);
  const untold = { data, context, signature, streamed, batched, ciphertext, sharedSecret };
  return { keyId, newKeyId, kemKeyId, untold };
}

describeKms("the audit log", ({ start }) => {
  it("has an entry for every use of a key, in order, without signed data, verified data or secrets", async () => {
    const { kms, rest } = await start();
    const { keyId, newKeyId, kemKeyId, untold } = await useEverything(kms);
    const entries = await readAudit(kms);
    const deeds = entries.map((entry) => `${entry.keyId} ${entry.operation} ${entry.details}`);
    expect(deeds).toEqual([
      `${keyId} CREATE algorithm=ML-DSA-44, usage=SIGN`,
      `${keyId} SIGN input=data`,
      `${keyId} SIGN input=stream, bytes=${data.length}`,
      `${keyId} SIGN input=data, batchItem=1/1`,
      `${keyId} VERIFY valid=true`,
      `${keyId} VERIFY valid=false`,
      `${keyId} ROTATE newKeyId=${newKeyId}`,
      `${newKeyId} CREATE algorithm=ML-DSA-44, usage=SIGN, rotatedFrom=${keyId}`,
      `${keyId} DESTROY stateBefore=ROTATED`,
      `${kemKeyId} CREATE algorithm=ML-KEM-512, usage=KEM`,
      `${kemKeyId} ENCAPSULATE algorithm=ML-KEM-512`,
      `${kemKeyId} DECAPSULATE algorithm=ML-KEM-512`,
    ]);
    for (const entry of entries) expect(entry).toMatchObject({ outcome: "OK", user: "system" });
    const { text } = await rest("GET /api/kms/audit");
    expect(text).toContain(keyId);
    const leaked = Object.entries(untold).filter(([, bytes]) => {
      const beginning = Buffer.from(bytes).subarray(0, 12);
      return (["utf8", "base64", "hex"] as const).some((form) => text.includes(beginning.toString(form)));
    });
    expect(leaked).toEqual([]);
  });

  it.each([9e15, -9e15])("is still readable after an entry's time was changed to %d ms", async (ms) => {
    const { kms, tamper, keyId } = await withKey(start());
    await kms.sign({ keyId, data });
    const [created, signed] = await readAudit(kms, keyId);
    await tamper(changeEntry(1, { occurred_at_ms: ms }));
    expect(await readAudit(kms, keyId)).toEqual([
      { ...created, damaged: true, timestamp: timestampFromMs(0) },
      signed,
    ]);
  });

  it("stores at most 100 characters of an unknown name, by which its entries can be found", async () => {
    const { kms } = await start();
    for (const keyId of ["k".repeat(255), `name/${"n".repeat(590)}/7`, `name/${"€".repeat(590)}`]) {
      await refusal(kms.sign({ keyId, data }));
      const [entry] = (await kms.getAuditLog({ outcome: "REFUSED" })).auditLog.slice(-1);
      expect(entry?.keyId).toBe(`${keyId.slice(0, 99)}…`);
    }
    expect(await readDeeds(kms, "k".repeat(255))).toEqual(["SIGN REFUSED reason=KEY_NOT_FOUND"]);
    expect(await readDeeds(kms, `name/${"n".repeat(590)}/7`)).toEqual(["SIGN REFUSED reason=KEY_NOT_FOUND"]);
  });
});

describeKms("KmsService.VerifyAuditLog", ({ start }) => {
  it("accepts a log whose hashes match the entries from GetAuditLog, until an entry is changed", async () => {
    const { kms, tamper, keyId } = await withKey(start());
    await kms.sign({ keyId, data });
    await refusal(kms.sign({ keyId: 'quote " backslash \\ key 🔑 é \u2028 /', data }));
    let head = "0".repeat(64);
    const entries = await readAudit(kms);
    for (const entry of entries) {
      head = hashEntry(entry, head);
      expect(entry.entryHash).toBe(head);
    }
    const found = await kms.verifyAuditLog({});
    expect(found).toMatchObject({ valid: true, entries: 3, head, reason: "" });
    expect(found.firstBrokenSequence).toBeUndefined();
    const watch = () => Array.fromAsync(kms.watchAuditVerification({}));
    const messages = await watch();
    const last = messages.pop();
    expect(last).toMatchObject({ entriesVerified: 3, entriesTotal: 3 });
    expect(last?.result).toMatchObject({ valid: true, entries: 3, verifiedFrom: 1 });
    expect(messages.every(({ result }) => result === undefined)).toBe(true);
    await tamper(changeEntry(2, { details: "input=mu" }));
    expect((await watch()).at(-1)?.result).toMatchObject({ valid: false, firstBrokenSequence: 2 });
  });
});

describeKms("a server that cannot write its audit log", ({ start }) => {
  it("returns and changes nothing until it can write again", async () => {
    const { kms, tamper } = await start();
    const signing = await createKey(kms);
    const { keyId } = signing;
    const kem = await createKey(kms, { algorithm: "ML-KEM-512" });
    const { ciphertext } = present((await kms.encapsulate({ keyId: kem.keyId })).result);
    const signature = await sign(kms, { keyId, data });
    const rename = (from: "audit_entries", to: string) =>
      tamper((db) => db.schema.alterTable(from).renameTo(to).execute());
    await rename("audit_entries", "elsewhere");
    const calls = [
      kms.createKey({}),
      kms.sign({ keyId, data }),
      kms.batchSign({ keyId, data: [data] }),
      kms.signStream(signParts(keyId, data)),
      kms.verify({ keyId, data, signature }),
      kms.encapsulate({ keyId: kem.keyId }),
      kms.decapsulate({ keyId: kem.keyId, ciphertext }),
      kms.rotateKey({ keyId }),
      kms.destroyKey({ keyId }),
      kms.sign({ keyId: "key-no", data }),
    ];
    expect(await Promise.all(calls.map(refusal))).toEqual(calls.map(() => damaged));
    await rename("elsewhere" as "audit_entries", "audit_entries");
    expect((await kms.getKey({ keyId })).result).toMatchObject({ ...signing, status: "ACTIVE" });
    expect(await kms.getHealth({})).toMatchObject({ keyCount: 2 });
    expect(await kms.sign({ keyId, data })).toMatchObject({ status: "success" });
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true, entries: 5 });
  });

  it("refuses every call that needs an entry after the end of the log was tampered with", async () => {
    const { kms, tamper, keyId } = await withKey(start());
    await tamper((db) =>
      db
        .updateTable("audit_head")
        .set({ head_tag: "0".repeat(64) })
        .execute(),
    );
    const calls = [kms.createKey({}), kms.sign({ keyId, data }), kms.destroyKey({ keyId })];
    expect(await Promise.all(calls.map(refusal))).toEqual(calls.map(() => damaged));
  });
});
