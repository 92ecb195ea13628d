import { createHash } from "node:crypto";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Kysely } from "kysely";
import { expect, it } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { Schema } from "../../../src/database/schema.ts";
import { bytesOf } from "../../support/bytes.ts";
import { refusal } from "../../support/refusal.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, type KmsServer } from "./kms-server.ts";
import { readAudit } from "./read-audit.ts";

const zeros = "0".repeat(64);
const data = bytesOf("hello");

/** Computes the hash as the comment of kms.AuditEntry specifies. */
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

/** Writes a log of 6 entries. */
async function fillLog({ kms }: KmsServer): Promise<void> {
  const { keyId } = await createKey(kms);
  for (let i = 0; i < 4; i += 1) await kms.sign({ keyId, data });
  await refusal(kms.encapsulate({ keyId }));
}

describeKms("KmsService.VerifyAuditLog", (start) => {
  it("accepts a log whose hashes match the entries from GetAuditLog", async () => {
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

  it("reports what was tampered with", async () => {
    const server = await start();
    await fillLog(server);
    await server.tamper(changeEntry(2, { details: "input=mu" }));
    const messages = await Array.fromAsync(server.kms.watchAuditVerification({}));
    expect(messages.at(-1)?.result).toMatchObject({ valid: false, firstBrokenSequence: 2 });
  });
});

function changeEntry(sequence: number, change: object) {
  return (db: Kysely<Schema>): Promise<unknown> =>
    db.updateTable("audit_entries").set(change).where("sequence", "=", sequence).execute();
}
