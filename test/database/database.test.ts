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
  it("gives back what was written, after it was closed and opened again", async () => {
    const location = sqliteIn(makeTemporaryDirectory());
    const first = await openDatabase(location);
    await first.writer.insertInto("issuer_keys").values(row).execute();
    await first.close();
    const second = await openDatabase(location);
    onTestFinished(() => second.close());
    expect(await second.reader.selectFrom("issuer_keys").selectAll().execute()).toEqual([row]);
  });

  it("makes the data directory where it is missing", async () => {
    const database = await openDatabase(sqliteIn(join(makeTemporaryDirectory(), "a", "b")));
    onTestFinished(() => database.close());
    expect(await database.reader.selectFrom("issuer_keys").selectAll().execute()).toEqual([]);
  });

  it("has a commit on the disk when it answers: write-ahead log, synchronous = FULL", async () => {
    const { writer, close } = await openDatabase(sqliteIn(makeTemporaryDirectory()));
    onTestFinished(close);
    const mode = await sql<{ journal_mode: string }>`pragma journal_mode`.execute(writer);
    const synchronous = await sql<{ synchronous: number }>`pragma synchronous`.execute(writer);
    expect([mode.rows[0]?.journal_mode, synchronous.rows[0]?.synchronous]).toEqual(["wal", 2]);
  });

  it("takes nothing of a transaction that fails", async () => {
    const { reader, writer, close } = await openDatabase(sqliteIn(makeTemporaryDirectory()));
    onTestFinished(close);
    const failing = writer.transaction().execute(async (transaction) => {
      await transaction.insertInto("issuer_keys").values(row).execute();
      throw new Error("changed my mind");
    });
    await expect(failing).rejects.toThrow("changed my mind");
    expect(await reader.selectFrom("issuer_keys").selectAll().execute()).toEqual([]);
  });

  it("is refused with a sentence if a newer version wrote it", async () => {
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

  it("is refused with a sentence if the file is none of ours", async () => {
    const dataDir = makeTemporaryDirectory();
    writeFileSync(join(dataDir, "qsp.db"), "this is no database, and long enough to be looked at as one", {
      mode: 0o600,
    });
    await expect(openDatabase(sqliteIn(dataDir))).rejects.toThrow(storageError(/qsp\.db/));
  });

  it("is refused with a sentence if the data directory is a file", async () => {
    const path = join(makeTemporaryDirectory(), "file");
    writeFileSync(path, "");
    await expect(openDatabase(sqliteIn(path))).rejects.toThrow(
      storageError(/a file is where a directory should be/),
    );
    const exit = await runToEndHere(["serve", "--port", "0", "--data-dir", path]);
    expect(exit).toMatchObject({ code: 2, stderr: expect.stringMatching(/^qsp: [^\n]*\n$/) });
  });
});
