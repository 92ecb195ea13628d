import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { sqliteIn } from "../../src/database/database.ts";
import { findLogDamage, requireWholeLog } from "../../src/database/write-ahead-log.ts";
import { createRandom, type Random } from "../faults/mutations.ts";
import { endAfterAll } from "../support/at-end.ts";
import { flipBit } from "../support/bytes.ts";
import { makeSqlitePlace } from "../support/on-both.ts";
import { openDatabase } from "../support/open-store.ts";
import { storageError } from "../support/storage-error.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const seed = Number(process.env.QSP_TEST_SEED ?? 20261126);
/** Number of bits to flip, and of power cuts. */
const times = 150;
const frameBytes = 24 + 4096;
const headerBytes = 32;
/** The unit that a disk writes atomically. */
const sectorBytes = 512;

/** A database's two files, as a kill leaves them. */
interface Files {
  readonly database: Buffer;
  readonly log: Buffer;
}

describe(`the write-ahead log after a kill (seed ${seed})`, () => {
  const atEnd = endAfterAll();
  let directory: string;
  /** The files after each transaction. After the last frames are remains from before the log restarted. */
  let steps: readonly Files[];
  beforeAll(() => {
    directory = makeTemporaryDirectory(atEnd);
    steps = writeTransactions(join(directory, "origin.db"));
  });
  const put = ({ database, log }: Files): string => {
    const path = join(directory, "qsp.db");
    rmSync(`${path}-shm`, { force: true });
    writeFileSync(path, database);
    writeFileSync(`${path}-wal`, log);
    return path;
  };

  it(`counts as damaged by a flipped bit exactly if SQLite would drop a transaction before the last one (${times} bits)`, () => {
    const random = createRandom(seed);
    const files = steps.at(-1) as Files;
    const before = steps.at(-2) as Files;
    const [all, allButOne] = [readNumbers(put(files)).length, readNumbers(put(before)).length];
    const wrong: unknown[] = [];
    let losses = 0;
    for (let i = 0; i < times; i += 1) {
      // Headers are small, and have most fields.
      const at = random.pick([anyByte, headerByte, frameHeaderByte])(random, files.log.length);
      const path = put({ ...files, log: Buffer.from(flipBit(files.log, at, 1 << random.below(8))) });
      const isDamaged = findLogDamage(path) !== undefined;
      const kept = readNumbers(path).length;
      if (kept < allButOne) losses += 1;
      // Losing only the last transaction looks like a power cut.
      if (kept !== allButOne && kept < all !== isDamaged) wrong.push({ at, kept, isDamaged });
    }
    expect(wrong).toEqual([]);
    expect(losses).toBeGreaterThan(times / 4);
  });

  it(`counts as intact after each transaction, and after a power cut tore the last one (${times} cuts)`, () => {
    const random = createRandom(seed);
    const torn: unknown[] = steps.filter((files) => findLogDamage(put(files)) !== undefined);
    for (let i = 0; i < times; i += 1) {
      const step = 1 + random.below(steps.length - 1);
      const [before, after] = [steps[step - 1] as Files, steps[step] as Files];
      // The log restarted here, after all of it was copied to the database.
      if (!before.database.equals(after.database)) continue;
      const path = put({ ...after, log: tear(random, before.log, after.log) });
      if (findLogDamage(path) !== undefined) torn.push({ step, i });
    }
    expect(torn).toEqual([]);
  });

  it("reports where the damage is, and how much follows it", () => {
    const files = steps.at(-1) as Files;
    const at = headerBytes + frameBytes + 100;
    const path = put({ ...files, log: Buffer.from(flipBit(files.log, at)) });
    expect(findLogDamage(path)).toMatchObject({ frame: 2, transactions: expect.toSatisfy((n) => n > 10) });
    expect(() => requireWholeLog(path)).toThrow(storageError(/qsp\.db-wal is damaged at frame 2,.*cut-log/));
    expect(readFileSync(`${path}-wal`).length).toBe(files.log.length);
  });

  it.each(["missing", "empty"])("is rejected, and not removed, if the database is %s", (how) => {
    const path = put(steps.at(-1) as Files);
    if (how === "missing") rmSync(path);
    else writeFileSync(path, "");
    expect(() => requireWholeLog(path)).toThrow(storageError(/is a store's log.*missing or empty/));
    expect(existsSync(`${path}-wal`)).toBe(true);
  });

  it("stays next to a missing store that must not be created", async () => {
    const { directory, open } = await makeSqlitePlace();
    const { log } = steps.at(-1) as Files;
    writeFileSync(join(directory, "qsp.db-wal"), log, { mode: 0o600 });
    await expect(open()).rejects.toThrow(storageError(/qsp\.db-wal is a store's log/));
    expect(readdirSync(directory)).toEqual(["qsp.db-wal"]);
    expect(readFileSync(join(directory, "qsp.db-wal")).equals(log)).toBe(true);
  });
});

it("is on disk before a commit is answered: write-ahead log, synchronous = FULL", async () => {
  const { writer, close } = await openDatabase(sqliteIn(makeTemporaryDirectory()));
  onTestFinished(close);
  const mode = await sql<{ journal_mode: string }>`pragma journal_mode`.execute(writer);
  const synchronous = await sql<{ synchronous: number }>`pragma synchronous`.execute(writer);
  expect([mode.rows[0]?.journal_mode, synchronous.rows[0]?.synchronous]).toEqual(["wal", 2]);
});

/** Writes transactions of one to many pages, and restarts the log in the middle. */
function writeTransactions(path: string): Files[] {
  const database = new DatabaseSync(path);
  database.exec("pragma journal_mode = wal; pragma wal_autocheckpoint = 0");
  database.exec("create table numbers (number integer primary key, text text)");
  const read = (): Files => ({ database: readFileSync(path), log: readFileSync(`${path}-wal`) });
  const steps: Files[] = [];
  const write = (rows: number): void => {
    database.exec("begin immediate");
    const insert = database.prepare("insert into numbers (text) values (?)");
    for (let i = 0; i < rows; i += 1) insert.run("x".repeat(3000));
    database.exec("commit");
    steps.push(read());
  };
  for (let i = 0; i < 20; i += 1) write(1 + (i % 7));
  database.prepare("pragma wal_checkpoint(full)").all();
  for (let i = 0; i < 24; i += 1) write(1 + (i % 3));
  database.close();
  return steps;
}

/** The rows that SQLite finds after a crash. */
function readNumbers(path: string): unknown[] {
  const copy = `${path}.copy`;
  for (const suffix of ["", "-wal"]) copyFileSync(`${path}${suffix}`, `${copy}${suffix}`);
  rmSync(`${copy}-shm`, { force: true });
  const database = new DatabaseSync(copy);
  try {
    return database.prepare("select number from numbers").all();
  } catch {
    // SQLite recovered so little of the log that the table is missing, or the pages contradict each other.
    return [];
  } finally {
    database.close();
  }
}

const anyByte = (random: Random, end: number): number => random.below(end);
const headerByte = (random: Random): number => random.below(headerBytes);
const frameHeaderByte = (random: Random, end: number): number =>
  headerBytes + random.below(Math.floor((end - headerBytes) / frameBytes)) * frameBytes + random.below(24);

/** Writes each sector, or does not. */
function tear(random: Random, before: Buffer, after: Buffer): Buffer {
  const torn = Buffer.from(after);
  for (let at = 0; at < torn.length; at += sectorBytes) {
    if (random.below(2) === 0) continue;
    torn.fill(0, at, Math.min(at + sectorBytes, torn.length));
    if (at < before.length) before.copy(torn, at, at, at + sectorBytes);
  }
  return torn;
}
