import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SignedCheckpoint } from "../../src/audit/verification.ts";
import { writeEntries } from "../support/entries.ts";
import { makeSqlitePlace, type Place } from "../support/on-both.ts";
import { runHere } from "../support/run-here.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { copyLog, restoreLog } from "./audit-log.ts";

/** Creates a store with a log whose newest checkpoint covers it. */
async function fillLog(place: Place, count: number): Promise<SignedCheckpoint> {
  const store = await place.open();
  await writeEntries(store, count);
  const { checkpoint } = await store.verifyAudit();
  await store.close();
  if (checkpoint === undefined) throw new Error("no checkpoint");
  return checkpoint;
}

const auditVerify = ({ settings }: Place, ...operands: string[]) =>
  runHere(["audit", "verify", ...operands, ...settings], { env: process.env });

/** Keeps something in a file, as an outsider would. */
function keep(content: unknown): string {
  const path = join(makeTemporaryDirectory(), "checkpoint.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

/** A checkpoint in the REST API's JSON. */
function toJson({ sequence, entryHash, signedAt, signature }: SignedCheckpoint) {
  return {
    sequence,
    entryHash,
    signedAt: signedAt.toISOString(),
    signature: Buffer.from(signature).toString("base64"),
  };
}

/** Matches one sentence on standard output that contains all of these. */
const sentence = (...words: string[]) =>
  expect.stringMatching(new RegExp(`^[^\\n]*${words.join("[^\\n]*")}[^\\n]*\\n$`));

describe("audit verify", () => {
  it("exits with 0 and one sentence if the log is valid, and shows its progress", async () => {
    const place = await makeSqlitePlace();
    const { entryHash } = await fillLog(place, 1500);
    const { code, stdout, stderr } = await auditVerify(place);
    expect([code, stdout]).toEqual([0, sentence("valid", "1,500 entries", entryHash, "entry 1500")]);
    expect(stderr).toContain("1,500 of 1,500");
  });

  it("exits with 1, names the first broken entry, and changes nothing if the log was tampered with", async () => {
    const place = await makeSqlitePlace();
    await fillLog(place, 7);
    await place.query("update audit_entries set user_name = 'eve' where sequence in (4, 6)");
    const before = await copyLog(place);
    const { code, stdout } = await auditVerify(place);
    expect({ code, stdout }).toEqual({ code: 1, stdout: sentence("broken at entry 4:", "7 entries") });
    expect(await copyLog(place)).toEqual(before);
  });

  it("compares the log with an externally stored checkpoint, and names the first missing entry", async () => {
    const place = await makeSqlitePlace();
    await fillLog(place, 2);
    const shorter = await copyLog(place);
    const checkpoint = toJson(await fillLog(place, 2));
    // The REST response of VerifyAuditLog, or only its checkpoint.
    for (const content of [checkpoint, { status: "success", valid: true, checkpoint }])
      expect(await auditVerify(place, keep(content))).toMatchObject({
        code: 0,
        stdout: sentence("valid", "4 entries", "matches your checkpoint at entry 4"),
      });
    await restoreLog(place, shorter);
    expect(await auditVerify(place, keep(checkpoint))).toMatchObject({
      code: 1,
      stdout: sentence("broken at entry 3:", "2 entries"),
    });
  });

  it("signs no checkpoint of entries that the store's checkpoints do not cover", async () => {
    const place = await makeSqlitePlace();
    await fillLog(place, 3);
    await place.query("delete from audit_checkpoints");
    expect(await auditVerify(place)).toMatchObject({ code: 0, stdout: sentence("no signed checkpoint") });
    expect(await place.query("select * from audit_checkpoints")).toEqual([]);
  });

  it("exits with 1 if the store did not sign the checkpoint for this log", async () => {
    const place = await makeSqlitePlace();
    const checkpoint = toJson(await fillLog(place, 2));
    const changed = keep({ ...checkpoint, sequence: 1 });
    const refused = { code: 1, stderr: sentence("not signed by this store for this log") };
    expect(await auditVerify(place, changed)).toMatchObject(refused);
    const verifyIdentities = ["audit", "verify-identities", keep(checkpoint), ...place.settings];
    expect(await runHere(verifyIdentities, { env: process.env })).toMatchObject(refused);
  });
});
