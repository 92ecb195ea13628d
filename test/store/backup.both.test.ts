import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { nameMasterKey } from "../../src/crypto/sealing.ts";
import { openDatabaseOf } from "../../src/database/database.ts";
import { listTables } from "../../src/database/schema.ts";
import type { Store } from "../../src/store/store.ts";
import { rewrap } from "../secrets/rewrap-place.ts";
import { addRow, readSecretText } from "../support/entries.ts";
import {
  describeStores,
  type MakePlace,
  makePostgresPlace,
  makeSqlitePlace,
  type Place,
} from "../support/on-both.ts";
import { coreTables, tables } from "../support/open-store.ts";
import { describePostgres } from "../support/postgres.ts";
import { main } from "../support/program.ts";
import { type Run, runToEndHere } from "../support/run-here.ts";
import { runToEnd } from "../support/start-server.ts";
import { readAllRows } from "../support/tables.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const timeout = 180_000;
const oneSentence = expect.stringMatching(/^qsp: [^\n]+\n$/);
/** ID of the writers' lock: src/database/postgres.ts. */
const writeLock = 5_202_611;
/** More than one chunk of copied rows. */
const transfers = 1100;

describe("a store that was backed up and restored has all rows of all tables", { timeout }, () => {
  it("from SQLite to SQLite", () => expectCopied([makeSqlitePlace, makeSqlitePlace]));

  describePostgres("with PostgreSQL", () => {
    it("from PostgreSQL to PostgreSQL", () => expectCopied([makePostgresPlace, makePostgresPlace]));

    it("from SQLite to PostgreSQL and back", () =>
      expectCopied([makeSqlitePlace, makePostgresPlace, makeSqlitePlace]));
  });
});

describeStores("backup", (makePlace) => {
  it("copies a consistent snapshot of a store that is being written", async () => {
    const place = await makePlace();
    const store = await place.open();
    await addThings(store, 0, 600);
    const file = backupFile();
    let isCopying = true;
    const copying = runToEnd(["backup", file, ...place.settings]).finally(() => {
      isCopying = false;
    });
    let written = 600;
    for (; isCopying; written += 1) await addThings(store, written, 1);
    expect(await copying).toMatchObject({ code: 0 });
    expect(written).toBeGreaterThan(601);

    const copy = await makeSqlitePlace();
    expect(await runToEnd(["restore", file, ...copy.settings])).toMatchObject({ code: 0 });
    copyFileSync(place.keyFile, copy.keyFile);
    const [{ things, entries } = {}] = await copy.query(`select
      (select count(*) from list_counts) as things, (select count(*) from audit_entries) as entries`);
    expect(things).toBe(entries);
    expect(things).toBeGreaterThanOrEqual(600);
    const restored = await copy.open();
    expect(await restored.verifyAudit()).toMatchObject({ valid: true, entries });
    expect(await readSecretText(restored, "things/0/seed")).toBe("secret 0");
  });
});

describe("backup", { timeout }, () => {
  it("leaves a single file with mode 0600, and reports what is readable", async () => {
    const place = await leaveThings(makeSqlitePlace);
    const [directory, before] = [makeTemporaryDirectory(), readdirSync(place.directory)];
    const file = join(directory, "backup.db");
    const backedUp = await backUp(place, file);
    expect(backedUp).toMatchObject({ code: 0, stderr: expect.not.stringContaining("qsp:") });
    expect(backedUp.stdout).toMatch(/secret keys are sealed .* Anyone who has the file can read names, logs/);
    expect(readdirSync(directory)).toEqual(["backup.db"]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(place.directory).filter((name) => !/-(wal|shm)$/.test(name))).toEqual(
      before.filter((name) => !/-(wal|shm)$/.test(name)),
    );
  });

  it("leaves existing files unchanged, and rejects the name of one", async () => {
    const place = await leaveThings(makeSqlitePlace);
    const directory = makeTemporaryDirectory();
    const present = ["backup.db-wal", "backup.db.partial"].map((name) => join(directory, name));
    for (const file of present) writeFileSync(file, "precious");
    expect(await backUp(place, join(directory, "backup.db"))).toMatchObject({ code: 0 });
    for (const file of present) {
      expect(await backUp(place, file)).toMatchObject({ code: 2, stdout: "", stderr: oneSentence });
      expect(readFileSync(file, "utf8")).toBe("precious");
    }
    expect(readdirSync(directory).sort()).toEqual(["backup.db", "backup.db-wal", "backup.db.partial"]);
  });

  it("in the middle of a rotation needs both keys, which it and restore report", async () => {
    const place = await makeRotating();
    const file = backupFile();
    const keys = [place.keyFile, `${place.keyFile}.next`];
    const [present = "", next = ""] = keys.map(readKeyId);
    const { code, stdout } = await backUp(place, file);
    expect({ code, stdout }).toEqual({ code: 0, stdout: containing(...[present, next].sort(), ...keys) });

    const [whole, half] = [await makeSqlitePlace(), await makeSqlitePlace()];
    for (const suffix of ["", ".next"])
      copyFileSync(`${place.keyFile}${suffix}`, `${whole.keyFile}${suffix}`);
    copyFileSync(`${place.keyFile}.next`, half.keyFile);
    expect(warningsOf(await restore(whole, file))).toEqual([]);
    expect(warningsOf(await restore(half, file))).toEqual([containing(present, "not available")]);

    renameSync(`${place.keyFile}.next`, place.keyFile);
    const other = backupFile();
    const exit = await backUp(place, other);
    expect(exit.code).toBe(1);
    expect(warningsOf(exit)).toEqual([containing(other, "was written", present, "not available")]);
  });

  it.each<[what: string, spoil: (place: Place) => unknown, says: string]>([
    ["of another store", ({ keyFile }) => writeFileSync(keyFile, "0f".repeat(32)), "does not open"],
    ["that is malformed", ({ keyFile }) => writeFileSync(keyFile, "0f"), "is not a master key"],
    ["that other users can read", ({ keyFile }) => chmodSync(keyFile, 0o644), "other users can read"],
    [
      "with a malformed next key",
      ({ keyFile }) => writeFileSync(`${keyFile}.next`, "0f"),
      "is not a master key",
    ],
    ["and a changed root key", changeRootKey, "root key was changed.*qsp store verify"],
  ])("succeeds despite a master key %s, warns, and exits with 1", async (_what, spoil, says) => {
    const place = await leaveThings(makeSqlitePlace);
    const file = backupFile();
    spoil(place);
    const exit = await backUp(place, file);
    expect(exit).toMatchObject({ code: 1, stdout: expect.stringContaining(`to ${file}.`) });
    expect(warningsOf(exit)).toEqual([expect.stringMatching(new RegExp(`${file} was written.*${says}`))]);
  });

  it("warns about a wrong master key in QSP_MASTER_KEY without printing it", async () => {
    const place = await leaveThings(makeSqlitePlace);
    const QSP_MASTER_KEY = "0f".repeat(32);
    const args = ["backup", backupFile(), "--data-dir", place.directory];
    const exit = await runToEndHere(args, { QSP_MASTER_KEY });
    expect(exit.code).toBe(1);
    const says = containing("QSP_MASTER_KEY does not open it", readKeyId(place.keyFile));
    expect(warningsOf(exit)).toEqual([says]);
    expect(exit.stdout + exit.stderr).not.toContain(QSP_MASTER_KEY);
  });

  it("checks no key if none is configured, and exits with 0", async () => {
    const place = await leaveThings(makeSqlitePlace);
    rmSync(place.keyFile);
    const exit = await backUp(place, backupFile());
    expect(exit).toMatchObject({ code: 0 });
    expect(warningsOf(exit)).toEqual([]);
    expect(existsSync(place.keyFile)).toBe(false);
  });

  it("fails with one sentence if the file cannot be written", async () => {
    const place = await leaveThings(makeSqlitePlace);
    const stderr = expect.stringMatching(/^qsp: .*cannot be written.*\n$/);
    const exit = await backUp(place, backupFile("x".repeat(250)));
    expect(exit).toMatchObject({ code: 2, stdout: "", stderr });
  });

  it("rejects a data directory without a store, and leaves nothing behind", async () => {
    const place = await makeSqlitePlace();
    const directory = makeTemporaryDirectory();
    const exit = await backUp(place, join(directory, "backup.db"));
    expect(exit).toMatchObject({ code: 2, stdout: "", stderr: oneSentence });
    expect([readdirSync(directory), readdirSync(place.directory)]).toEqual([[], []]);
  });
});

describeStores("restore", (makePlace) => {
  it("rejects a place that already has a store, and changes nothing there", async () => {
    const place = await leaveThings(makePlace);
    const file = await makeBackup();
    const before = await readAllRows(place);
    const TMPDIR = makeTemporaryDirectory();
    const exit = await restore(place, file, { TMPDIR });
    expect(exit).toMatchObject({ code: 2, stdout: "", stderr: oneSentence });
    expect(await readAllRows(place)).toEqual(before);
    expect(readdirSync(TMPDIR)).toEqual([]);
  });

  it("does not upgrade the store that it rejects", async () => {
    const place = await makePlace();
    await (await openDatabaseOf(coreTables.owners, place.location)).close();
    await place.query("insert into list_counts values ('things', 1)");
    const readSteps = () => place.query("select name from kysely_migration order by name");
    const before = await readSteps();
    const exit = await restore(place, await makeBackup());
    expect(exit).toMatchObject({ code: 2, stderr: expect.stringMatching(/already contains a store\n$/) });
    expect(await readSteps()).toEqual(before);
  });
});

describe("restore", { timeout }, () => {
  it.each([
    ["of another store", "0f".repeat(32), "does not open"],
    ["that is malformed", "0f", "is not a master key"],
  ])(
    "succeeds despite a master key %s, warns, and needs only the right one",
    async (_what, content, says) => {
      const from = await leaveThings(makeSqlitePlace);
      const [file, place] = [backupFile(), await makeSqlitePlace()];
      await backUp(from, file);
      writeFileSync(place.keyFile, content, { mode: 0o600 });
      const exit = await restore(place, file);
      expect(exit).toMatchObject({ code: 0, stdout: expect.stringContaining("Restored ") });
      expect(warningsOf(exit)).toEqual([containing(place.keyFile, says)]);
      copyFileSync(from.keyFile, place.keyFile);
      expect(await readSecretText(await place.open(), "things/0/seed")).toBe("secret 0");
    },
  );

  it("leaves no temporary files, and leaves its file unchanged", async () => {
    const file = await makeBackup();
    const before = readFileSync(file);
    const [place, TMPDIR] = [await makeSqlitePlace(), makeTemporaryDirectory()];
    const exit = await restore(place, file, { TMPDIR });
    expect(exit).toMatchObject({ code: 0, stdout: expect.stringContaining(place.keyFile) });
    expect([readdirSync(TMPDIR), readdirSync(join(file, ".."))]).toEqual([[], ["backup.db"]]);
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  const damaged = "is damaged or incomplete; use another copy of it$";
  it.each<[what: string, make: (file: string) => unknown, says: string]>([
    ["is missing", () => undefined, ""],
    ["is a directory", (file) => mkdirSync(file), "is not a file$"],
    ["is not a database", (file) => writeFileSync(file, "this is no database, but long enough"), ""],
    ["is the start of a database", (file) => writeFileSync(file, "SQLite format 3\0 and no more"), ""],
    ["has no store", (file) => runSql(file, "create table t (a)"), ""],
    ["lacks a table", async (file) => runSql(await makeBackup(file), "drop table audit_head"), "is damaged"],
    ["is next to a log", copyInUse, "is a store with a log next to it, not a backup"],
    ["is truncated", async (file) => truncateSync(await makeBackup(file), 65_536), damaged],
    ["is damaged in the middle", async (file) => overwriteMiddle(await makeBackup(file)), damaged],
  ])("rejects a file that %s, names it, and creates no store", async (_, make, says) => {
    const file = join(makeTemporaryDirectory(), "monday.backup");
    await make(file);
    const [place, temporary] = [await makeSqlitePlace(), makeTemporaryDirectory()];
    const { code, stdout, stderr } = await restore(place, file, { TMPDIR: temporary });
    const lines = stderr.split("\n").filter((line) => !/ of .* rows /.test(line));
    expect({ code, stdout, lines }).toEqual({
      code: 2,
      stdout: "",
      lines: [expect.stringMatching(`^qsp: .*${file}.*${says}`), ""],
    });
    expect([readdirSync(temporary), readdirSync(place.directory)]).toEqual([[], []]);
  });
});

describePostgres("a command ended by a signal", () => {
  it("backup leaves nothing behind", { timeout }, async () => {
    const place = await leaveThings(makePostgresPlace);
    await place.query("begin");
    await place.query("lock table audit_entries in access exclusive mode");
    const directory = makeTemporaryDirectory();
    const child = start(["backup", join(directory, "backup.db"), ...place.settings]);
    await vi.waitUntil(() => readdirSync(directory).length > 0, { timeout });
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([null, "SIGTERM"]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it("restore leaves no copy behind in the data directory", { timeout }, async () => {
    const file = await makeBackup();
    const [place, temporary] = [await makePostgresPlace(), makeTemporaryDirectory()];
    await place.query(`select pg_advisory_lock(${writeLock})`);
    const child = start(["restore", file, ...place.settings], { TMPDIR: temporary });
    // Tests of other databases on the same PostgreSQL wait for their own locks.
    const waiting = `select 1 from pg_locks join pg_database on oid = database
      where datname = current_database() and locktype = 'advisory' and not granted`;
    const isWaiting = async () => (await place.query(waiting)).length > 0;
    await vi.waitUntil(isWaiting, { timeout });
    expect(readdirSync(place.directory).sort()).toEqual([
      expect.stringMatching(/^qsp-restore-[0-9a-f]+$/),
      expect.stringMatching(/^qsp-restore-[0-9a-f]+\.lock$/),
    ]);
    expect(readdirSync(temporary)).toEqual([]);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([null, "SIGTERM"]);
    expect(readdirSync(place.directory)).toEqual([]);
  });
});

/** Fills the first place, and copies it through backups to each of the others. */
async function expectCopied([makeFirst, ...makeOthers]: [MakePlace, ...MakePlace[]]): Promise<void> {
  const first = await leaveThings(makeFirst);
  await fillAllTables(first);
  const rows = await readAllRows(first);
  expect(Object.keys(rows).filter((table) => rows[table]?.length === 0)).toEqual([]);
  expect(rows.nft_transfers).toHaveLength(transfers);
  let from = first;
  for (const makePlace of makeOthers) {
    const to = await makePlace();
    const file = backupFile();
    expect(await backUp(from, file)).toMatchObject({ code: 0 });
    expect(await restore(to, file)).toMatchObject({ code: 0 });
    expect(existsSync(to.keyFile)).toBe(false);
    expect(await readAllRows(to)).toEqual(rows);
    from = to;
  }
  copyFileSync(first.keyFile, from.keyFile);
  const store = await from.open();
  expect(await readSecretText(store, "things/0/seed")).toBe("secret 0");
  expect(await store.verifyAudit()).toMatchObject({ valid: true, entries: 1 });
}

function backUp({ settings }: Place, file: string): Promise<Run> {
  return runToEndHere(["backup", file, ...settings]);
}

function restore({ settings }: Place, file: string, env?: Readonly<Record<string, string>>): Promise<Run> {
  return runToEndHere(["restore", file, ...settings], env);
}

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, ...env },
    stdio: "ignore",
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** Runs a statement in a SQLite file. */
function runSql(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

/** Matches text that contains these words in order. */
function containing(...words: string[]) {
  const patterns = words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return expect.stringMatching(new RegExp(patterns.join(".*"), "s"));
}

function warningsOf({ stderr }: Run): string[] {
  return stderr.split("\n").filter((line) => line.startsWith("qsp: "));
}

function readKeyId(file: string): string {
  return nameMasterKey(Buffer.from(readFileSync(file, "utf8").trim(), "hex"));
}

/** Creates a store in the middle of a master key rotation: some secrets are under each key. */
async function makeRotating(): Promise<Place> {
  const place = await makeSqlitePlace();
  const store = await place.open();
  await addThings(store, 0, 600);
  await store.close();
  const rotating = rewrap(place, place.masterKey, () => {
    throw new Error("interrupted");
  });
  await expect(rotating).rejects.toThrow("interrupted");
  return place;
}

/** Creates a store with one thing in it, and closes it. */
async function leaveThings(makePlace: MakePlace): Promise<Place> {
  const place = await makePlace();
  const store = await place.open();
  await addThings(store, 0, 1);
  await store.close();
  return place;
}

/** Adds things in one transaction: each has a row, a secret and an audit entry. */
async function addThings(store: Store, from: number, count: number): Promise<void> {
  await store.write(async (transaction) => {
    for (let i = from; i < from + count; i++) {
      await addRow(transaction, `thing ${i}`);
      await transaction.putSecret(`things/${i}/seed`, Buffer.from(`secret ${i}`));
    }
  });
}

/** Adds rows to every empty table: values at the limits of each type, and null where allowed. */
async function fillAllTables(place: Place): Promise<void> {
  const store = await place.open();
  const present = await readAllRows(place);
  const columnsOf = new Map(
    (await store.reader.introspection.getTables()).map(({ name, columns }) => [name, columns]),
  );
  await store.write(async ({ db }) => {
    for (const [table, key] of listTables(tables.owners)) {
      if ((present[table]?.length ?? 0) > 0) continue;
      const columns = columnsOf.get(table) ?? [];
      const makeRow = (i: number) =>
        columns.map(({ name, dataType, isNullable }) => {
          // SQLite accepts null even in primary key columns.
          const isNull = isNullable && !key.includes(name) && i % 2 === 1;
          return [name, isNull ? null : sampleOf(dataType.toLowerCase(), i)];
        });
      const count = table === "nft_transfers" ? transfers : 3;
      const rows = Array.from({ length: count }, (_, i) => Object.fromEntries(makeRow(i)));
      // The column names come from the database itself.
      await db
        .insertInto(table)
        .values(rows as never)
        .execute();
    }
  });
  await store.close();
}

/** The i-th value of a column's type; all are different. */
function sampleOf(dataType: string, i: number): string | number | Uint8Array {
  if (dataType === "blob" || dataType === "bytea") return Uint8Array.from({ length: i }, (_, at) => 255 - at);
  if (dataType === "integer" || dataType === "int8") return i === 0 ? 0 : Number.MAX_SAFE_INTEGER - i;
  if (dataType === "text") return `${i % 2 === 0 ? "a" : "B"}${i} 'ä' "\u{1f511}"\n`;
  throw new Error(`no sample of ${dataType}`);
}

const backupFile = (name = "backup.db") => join(makeTemporaryDirectory(), name);

/** Makes a backup of a store with one thing in it. */
async function makeBackup(file = backupFile()): Promise<string> {
  expect(await backUp(await leaveThings(makeSqlitePlace), file)).toMatchObject({ code: 0 });
  return file;
}

function changeRootKey({ directory }: Place): void {
  const change = "update sealed_secrets set ciphertext = zeroblob(60) where identity = 'store/root-key'";
  runSql(join(directory, "qsp.db"), change);
}

/** Copies a store that is in use, with its log. */
async function copyInUse(file: string): Promise<void> {
  const { directory, open } = await makeSqlitePlace();
  await open();
  for (const end of ["", "-wal"]) copyFileSync(join(directory, `qsp.db${end}`), `${file}${end}`);
}

/** Overwrites all pages except the first ones, which describe the tables. */
function overwriteMiddle(file: string): void {
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xff, bytes.length / 2, bytes.length - 8192));
}
