import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SignedCheckpoint } from "../../src/audit/verification.ts";
import { readVerbLine } from "../../src/cli/command-line/options.ts";
import { openFiles } from "../../src/cli/files/open.ts";
import { auditVerify as auditVerifyCommand } from "../../src/cli/operator/audit-verify.ts";
import { toVerb } from "../../src/cli/operator/store-verb.ts";
import { ConfigError, readConfig } from "../../src/config.ts";
import { sqliteIn } from "../../src/database/database.ts";
import { masterKeyIn } from "../../src/secrets/master-key.ts";
import { writeEntries } from "../support/entries.ts";
import { makeSqlitePlace, type Place } from "../support/on-both.ts";
import { tables } from "../support/open-store.ts";
import { runHere, runToEndHere } from "../support/run-here.ts";
import { runToEnd, startServer } from "../support/start-server.ts";
import { readTableNames } from "../support/tables.ts";
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

/** Runs the command in this process, which is faster. */
function auditVerifyWith(dataDir: string, file: string): Promise<unknown> {
  const line = readVerbLine(toVerb(auditVerifyCommand), [file]);
  return auditVerifyCommand.run({
    ...line,
    files: openFiles(toVerb(auditVerifyCommand), line),
    loadPackages: async () => [],
    loadTables: async () => tables,
    config: readConfig([], {}),
    location: sqliteIn(dataDir),
    masterKey: masterKeyIn(dataDir),
  });
}

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
  it("exits with 0 and one sentence if the log is valid", async () => {
    const place = await makeSqlitePlace();
    const { entryHash } = await fillLog(place, 3);
    const { code, stdout } = await auditVerify(place);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: sentence("valid", "3 entries", entryHash, "entry 3"),
    });
  });

  it("exits with 1 and names the first broken entry if the log was tampered with", async () => {
    const place = await makeSqlitePlace();
    await fillLog(place, 7);
    await place.query("update audit_entries set user_name = 'eve' where sequence in (4, 6)");
    const { code, stdout } = await auditVerify(place);
    expect({ code, stdout }).toEqual({ code: 1, stdout: sentence("broken at entry 4:", "7 entries") });
  });

  it("rejects a place without a store, and creates none", async () => {
    const place = await makeSqlitePlace();
    expect(await auditVerify(place)).toMatchObject({
      code: 2,
      stdout: "",
      stderr: sentence("qsp: ", "does not"),
    });
    expect(readdirSync(place.directory)).toEqual([]);
    expect(await readTableNames(place)).toEqual([]);
  });
});

describe("audit verify with an externally stored checkpoint", () => {
  it("exits with 0 if the log matches it", async () => {
    const place = await makeSqlitePlace();
    const checkpoint = await fillLog(place, 2);
    await fillLog(place, 2);
    const { code, stdout } = await auditVerify(place, keep(toJson(checkpoint)));
    expect({ code, stdout }).toEqual({ code: 0, stdout: sentence("valid", "4 entries") });
  });

  it("exits with 1 and names the first missing entry if it belongs to a longer log", async () => {
    const place = await makeSqlitePlace();
    await fillLog(place, 2);
    const shorter = await copyLog(place);
    const checkpoint = await fillLog(place, 2);
    await restoreLog(place, shorter);
    const { code, stdout } = await auditVerify(place, keep(toJson(checkpoint)));
    expect({ code, stdout }).toEqual({ code: 1, stdout: sentence("broken at entry 3:", "2 entries") });
  });
});

describe("audit verify in a data directory", { timeout: 180_000 }, () => {
  it("signs a checkpoint if the log is valid", async () => {
    const place = await makeSqlitePlace();
    await fillLog(place, 3);
    await place.query("delete from audit_checkpoints");
    expect(await auditVerify(place)).toMatchObject({ code: 0 });
    expect((await copyLog(place)).audit_checkpoints).toMatchObject([{ sequence: 3 }]);
  });

  it("reports progress on standard error", async () => {
    const place = await makeSqlitePlace();
    await fillLog(place, 1500);
    expect((await auditVerify(place)).stderr).toContain("1,500 of 1,500");
  });

  it("leaves a tampered log unchanged", async () => {
    const place = await makeSqlitePlace();
    await fillLog(place, 3);
    await place.query("delete from audit_entries where sequence = 3");
    const before = await copyLog(place);
    expect(await auditVerify(place)).toMatchObject({ code: 1 });
    expect(await copyLog(place)).toEqual(before);
  });

  it("rejects a store whose master key is missing, and creates no new key", async () => {
    const place = await makeSqlitePlace();
    await fillLog(place, 1);
    const elsewhere = makeTemporaryDirectory();
    const masterKeyFile = join(elsewhere, "master.key");
    const { code, stdout } = await runToEndHere([
      "audit",
      "verify",
      ...place.settings,
      "--master-key-file",
      masterKeyFile,
    ]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  it("accepts the REST response of VerifyAuditLog as CHECKPOINT-FILE", async () => {
    const dataDir = makeTemporaryDirectory();
    const server = await startServer({ dataDir, args: ["--log-level", "error"] });
    const post = (path: string, body: unknown) =>
      fetch(`${server.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    await post("/api/kms/create-key", { alias: "kept", algorithm: "ML-DSA-65" });
    const answer = await (await post("/api/kms/verify-audit", {})).text();
    await server.stop();
    expect(JSON.parse(answer)).toMatchObject({ valid: true, checkpoint: { sequence: 1 } });

    const { code, stdout } = await runToEnd(["audit", "verify", keep(answer), "--data-dir", dataDir]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: sentence("valid", "1 entry") });
  });

  const whole = {
    sequence: 1,
    entryHash: "00".repeat(32),
    signedAt: "2026-01-01T00:00:00.000Z",
    signature: "",
  };
  const bad: Readonly<Record<string, unknown>> = {
    "no JSON": "valid: true",
    "no content": "",
    "a JSON null": null,
    "an answer without a checkpoint": { valid: true, entries: 0 },
    "a sequence that is not a number": { ...whole, sequence: "one" },
    "an invalid time": { ...whole, signedAt: "yesterday" },
    "no hash": { ...whole, entryHash: undefined },
    "no signature": { ...whole, signature: undefined },
  };
  for (const [what, content] of Object.entries(bad)) {
    it(`rejects a CHECKPOINT-FILE with ${what} without opening a store`, async () => {
      const dataDir = join(makeTemporaryDirectory(), "none");
      await expect(auditVerifyWith(dataDir, keep(content))).rejects.toThrow(ConfigError);
      expect(existsSync(dataDir)).toBe(false);
    });
  }

  it("exits with 2 and one sentence if the CHECKPOINT-FILE is not JSON", async () => {
    const dataDir = join(makeTemporaryDirectory(), "none");
    const path = keep("valid: true");
    const { code, stdout, stderr } = await runToEndHere(["audit", "verify", path, "--data-dir", dataDir]);
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: "", stderr: sentence("qsp: ", path) });
    expect(existsSync(dataDir)).toBe(false);
  });

  it("rejects a missing CHECKPOINT-FILE without opening a store", async () => {
    const dataDir = join(makeTemporaryDirectory(), "none");
    await expect(auditVerifyWith(dataDir, `${dataDir}.json`)).rejects.toThrow(ConfigError);
    expect(existsSync(dataDir)).toBe(false);
  });

  it("rejects a second CHECKPOINT-FILE", () => {
    expect(() => readVerbLine(toVerb(auditVerifyCommand), ["a.json", "b.json"])).toThrow("b.json");
  });
});
