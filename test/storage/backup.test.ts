import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Schema, tables } from "../../src/storage/schema.ts";
import type { Store } from "../../src/storage/store.ts";
import { type Exit, runToEnd } from "../interop/start-server.ts";
import { describePostgres } from "../postgres/shared.ts";
import { makeTemporaryDirectory } from "../temporary-directory.ts";
import { readSecretText } from "./entries.ts";
import { describeStores, type MakePlace, makePostgresPlace, makeSqlitePlace, type Place } from "./on-both.ts";
import { readAllRows } from "./tables.ts";

const timeout = 60_000;
const oneSentence = expect.stringMatching(/^qsp: [^\n]+\n$/);
/** More than are copied at once. */
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
  it("copies one moment of a store that is written meanwhile", async () => {
    const place = await makePlace();
    const store = await place.open();
    await addThings(store, 0, 600);
    const file = join(makeTemporaryDirectory(), "backup.db");
    let isCopying = true;
    const copying = backUp(place, file).finally(() => {
      isCopying = false;
    });
    let written = 600;
    for (; isCopying; written += 1) await addThings(store, written, 1);
    expect(await copying).toMatchObject({ code: 0 });
    expect(written).toBeGreaterThan(601);

    const copy = await makeSqlitePlace();
    expect(await restore(copy, file)).toMatchObject({ code: 0 });
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
  it("leaves one file of mode 0600, sealed, and nothing beside it, also after one that was interrupted", async () => {
    const place = await leaveThings(makeSqlitePlace);
    const [directory, before] = [makeTemporaryDirectory(), readdirSync(place.directory)];
    const file = join(directory, "backup.db");
    for (const suffix of ["", "-wal", "-shm", "-journal"])
      writeFileSync(`${file}.partial${suffix}`, "an interrupted backup");
    expect(await backUp(place, file)).toMatchObject({ code: 0, stderr: expect.not.stringContaining("qsp:") });
    expect(readdirSync(directory)).toEqual(["backup.db"]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expectSealed(readFileSync(file), readFileSync(place.keyFile, "utf8").trim());
    expect(readdirSync(place.directory).filter((name) => !/-(wal|shm)$/.test(name))).toEqual(
      before.filter((name) => !/-(wal|shm)$/.test(name)),
    );
  });

  it("refuses a file that exists, and leaves it as it is", async () => {
    const place = await leaveThings(makeSqlitePlace);
    const directory = makeTemporaryDirectory();
    const file = join(directory, "backup.db");
    writeFileSync(file, "precious");
    expect(await backUp(place, file)).toMatchObject({ code: 2, stdout: "", stderr: oneSentence });
    expect(readFileSync(file, "utf8")).toBe("precious");
    expect(readdirSync(directory)).toEqual(["backup.db"]);
  });

  it("refuses a data directory without a store, and leaves nothing behind", async () => {
    const place = await makeSqlitePlace();
    const directory = makeTemporaryDirectory();
    const exit = await backUp(place, join(directory, "backup.db"));
    expect(exit).toMatchObject({ code: 2, stdout: "", stderr: oneSentence });
    expect([readdirSync(directory), readdirSync(place.directory)]).toEqual([[], []]);
  });
});

describeStores("restore", (makePlace) => {
  it("refuses a place where there is a store already, and changes nothing there", async () => {
    const place = await leaveThings(makePlace);
    const file = join(makeTemporaryDirectory(), "backup.db");
    await backUp(await leaveThings(makeSqlitePlace), file);
    const before = await readAllRows(place);
    const temporary = makeTemporaryDirectory();
    const exit = await restore(place, file, { TMPDIR: temporary });
    expect(exit).toMatchObject({ code: 2, stdout: "", stderr: oneSentence });
    expect(await readAllRows(place)).toEqual(before);
    expect(readdirSync(temporary)).toEqual([]);
  });
});

describe("restore", { timeout }, () => {
  it("leaves no temporary files, and its file as it was", async () => {
    const file = join(makeTemporaryDirectory(), "backup.db");
    await backUp(await leaveThings(makeSqlitePlace), file);
    const before = readFileSync(file);
    const [place, temporary] = [await makeSqlitePlace(), makeTemporaryDirectory()];
    const exit = await restore(place, file, { TMPDIR: temporary });
    expect(exit).toMatchObject({ code: 0, stdout: expect.stringContaining(place.keyFile) });
    expect(readdirSync(temporary)).toEqual([]);
    expect(readdirSync(join(file, ".."))).toEqual(["backup.db"]);
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it.each([
    ["is missing", undefined],
    ["is no backup", "this is no database, and long enough to be looked at as one"],
  ])("refuses a file that %s, and makes no store", async (_what, content) => {
    const file = join(makeTemporaryDirectory(), "backup.db");
    if (content !== undefined) writeFileSync(file, content);
    const [place, temporary] = [await makeSqlitePlace(), makeTemporaryDirectory()];
    const exit = await restore(place, file, { TMPDIR: temporary });
    expect(exit).toMatchObject({ code: 2, stdout: "", stderr: oneSentence });
    expect([readdirSync(temporary), readdirSync(place.directory)]).toEqual([[], []]);
  });
});

/** Fills the first place, and brings it through backups to each of the others. */
async function expectCopied([makeFirst, ...makeOthers]: [MakePlace, ...MakePlace[]]): Promise<void> {
  const first = await leaveThings(makeFirst);
  await fillAllTables(first);
  const rows = await readAllRows(first);
  expect(Object.keys(rows).filter((table) => rows[table]?.length === 0)).toEqual([]);
  expect(rows.nft_transfers).toHaveLength(transfers);
  let from = first;
  for (const makePlace of makeOthers) {
    const to = await makePlace();
    const file = join(makeTemporaryDirectory(), "backup.db");
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

/** Expects that a backup of things shows neither a secret nor the master key. */
function expectSealed(backup: Buffer, masterKey: string): void {
  expect(backup.includes("things/0/seed")).toBe(true);
  const inTheClear = ["secret 0", masterKey, Buffer.from(masterKey, "hex")];
  expect(inTheClear.map((secret) => backup.includes(secret))).toEqual([false, false, false]);
}

function backUp({ settings }: Place, file: string): Promise<Exit> {
  return runToEnd(["backup", file, ...settings]);
}

function restore({ settings }: Place, file: string, env?: Readonly<Record<string, string>>): Promise<Exit> {
  return runToEnd(["restore", file, ...settings], env);
}

/** Makes a store with one thing in it, and closes it. */
async function leaveThings(makePlace: MakePlace): Promise<Place> {
  const place = await makePlace();
  const store = await place.open();
  await addThings(store, 0, 1);
  await store.close();
  return place;
}

/** Adds things in one transaction: of each a row, a secret and an audit entry. */
async function addThings(store: Store, from: number, count: number): Promise<void> {
  await store.write(async ({ db, putSecret, audit }) => {
    for (let i = from; i < from + count; i++) {
      await db
        .insertInto("list_counts")
        .values({ list_name: `thing ${i}`, row_count: i })
        .execute();
      await putSecret(`things/${i}/seed`, Buffer.from(`secret ${i}`));
      audit({ keyId: `thing ${i}`, operation: "CREATE", user: "ada", outcome: "OK", details: "" });
    }
  });
}

/** Puts rows into every table that has none: values at the edge of each type, and nothing where that may be. */
async function fillAllTables(place: Place): Promise<void> {
  const store = await place.open();
  const present = await readAllRows(place);
  const columnsOf = new Map(
    (await store.reader.introspection.getTables()).map(({ name, columns }) => [name, columns]),
  );
  await store.write(async ({ db }) => {
    for (const table of Object.keys(tables) as (keyof Schema)[]) {
      if ((present[table]?.length ?? 0) > 0) continue;
      const columns = columnsOf.get(table) ?? [];
      // SQLite takes null even in the columns of a primary key.
      const key: readonly string[] = tables[table];
      const rows = Array.from({ length: table === "nft_transfers" ? transfers : 3 }, (_, i) =>
        Object.fromEntries(
          columns.map(({ name, dataType, isNullable }) => [
            name,
            isNullable && !key.includes(name) && i % 2 === 1 ? null : sampleOf(dataType.toLowerCase(), i),
          ]),
        ),
      );
      // The names of the columns come from the database itself.
      await db
        .insertInto(table)
        .values(rows as never)
        .execute();
    }
  });
  await store.close();
}

/** The i-th value of a column's type; no two are the same. */
function sampleOf(dataType: string, i: number): string | number | Uint8Array {
  if (dataType === "blob" || dataType === "bytea") return Uint8Array.from({ length: i }, (_, at) => 255 - at);
  if (dataType === "integer" || dataType === "int8") return i === 0 ? 0 : Number.MAX_SAFE_INTEGER - i;
  if (dataType === "text") return `${i % 2 === 0 ? "a" : "B"}${i} 'ä' "\u{1f511}"\n`;
  throw new Error(`no sample of ${dataType}`);
}
