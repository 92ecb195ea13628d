import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { sqliteIn } from "../../src/database/database.ts";
import { openDatabase } from "../support/open-store.ts";
import { runToEndHere } from "../support/run-here.ts";
import { storageError } from "../support/storage-error.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const row = {
  key_id: "k1",
  algorithm: "ML-DSA-65",
  public_key: new Uint8Array([1, 2, 3]),
  created_at_ms: 1_767_268_800_000,
  retired_at_ms: null,
  record_tag: "",
};

describe("the embedded database", { timeout: 120_000 }, () => {
  it("returns what was written, after it was closed and reopened", async () => {
    const location = sqliteIn(makeTemporaryDirectory());
    const first = await openDatabase(location);
    await first.writer.insertInto("issuer_keys").values(row).execute();
    await first.close();
    const second = await openDatabase(location);
    onTestFinished(() => second.close());
    expect(await second.reader.selectFrom("issuer_keys").selectAll().execute()).toEqual([row]);
  });

  it("creates a missing data directory", async () => {
    const database = await openDatabase(sqliteIn(join(makeTemporaryDirectory(), "a", "b")));
    onTestFinished(() => database.close());
    expect(await database.reader.selectFrom("issuer_keys").selectAll().execute()).toEqual([]);
  });

  it("makes commits durable before it answers: write-ahead log, synchronous = FULL", async () => {
    const { writer, close } = await openDatabase(sqliteIn(makeTemporaryDirectory()));
    onTestFinished(close);
    const mode = await sql<{ journal_mode: string }>`pragma journal_mode`.execute(writer);
    const synchronous = await sql<{ synchronous: number }>`pragma synchronous`.execute(writer);
    expect([mode.rows[0]?.journal_mode, synchronous.rows[0]?.synchronous]).toEqual(["wal", 2]);
  });

  it("keeps nothing of a failed transaction", async () => {
    const { reader, writer, close } = await openDatabase(sqliteIn(makeTemporaryDirectory()));
    onTestFinished(close);
    const failing = writer.transaction().execute(async (transaction) => {
      await transaction.insertInto("issuer_keys").values(row).execute();
      throw new Error("changed my mind");
    });
    await expect(failing).rejects.toThrow("changed my mind");
    expect(await reader.selectFrom("issuer_keys").selectAll().execute()).toEqual([]);
  });

  it("rejects a store written by a newer version, in one sentence", async () => {
    const dataDir = makeTemporaryDirectory();
    await (await openDatabase(sqliteIn(dataDir))).close();
    const database = new DatabaseSync(join(dataDir, "qsp.db"));
    database
      .prepare("insert into kysely_migration (name, timestamp) values (?, ?)")
      .run("9999-from-the-future", new Date(0).toISOString());
    database.close();
    await expect(openDatabase(sqliteIn(dataDir))).rejects.toThrow(storageError(/newer version/));
    const exit = await runToEndHere(["serve", "--port", "0", "--data-dir", dataDir]);
    expect(exit).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^qsp: [^\n]*newer version[^\n]*\n$/),
    });
  });

  it("rejects a file that is not a store, in one sentence", async () => {
    const dataDir = makeTemporaryDirectory();
    writeFileSync(join(dataDir, "qsp.db"), "this is no database, and long enough to be looked at as one", {
      mode: 0o600,
    });
    await expect(openDatabase(sqliteIn(dataDir))).rejects.toThrow(storageError(/qsp\.db/));
  });

  it("rejects a data directory that is a file, in one sentence", async () => {
    const path = join(makeTemporaryDirectory(), "file");
    writeFileSync(path, "");
    await expect(openDatabase(sqliteIn(path))).rejects.toThrow(
      storageError(/a file is where a directory should be/),
    );
    const exit = await runToEndHere(["serve", "--port", "0", "--data-dir", path]);
    expect(exit).toMatchObject({ code: 2, stderr: expect.stringMatching(/^qsp: [^\n]*\n$/) });
  });
});
