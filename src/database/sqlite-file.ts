/** A SQLite file, opened in the thread that uses it. That thread blocks on the disk. */
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from "node:sqlite";
import { readErrorCode } from "../system-error.ts";
import type { Statement, StatementResult } from "./connection.ts";
import { identify } from "./file-identity.ts";

export interface SqliteFileOptions {
  readonly path: string;
  readonly readOnly: boolean;
  /** Milliseconds to wait while another program writes. */
  readonly busyMs: number;
  /**
   * Identity of the file at the path (see file-identity.ts), so that a replacement thread never opens a
   * different file.
   */
  readonly identity: string | undefined;
}

export interface SqliteFile {
  /**
   * Runs statements in order.
   *
   * @throws SQLite's own error at the first statement that fails
   */
  run(statements: readonly Statement[]): StatementResult[];
  close(): void;
}

/** SQLITE_BUSY (https://sqlite.org/rescode.html#busy). */
const busyCode = 5;
/** SQLITE_FULL. */
const fullCode = 13;
/** SQLITE_CANTOPEN. */
const canNotOpenCode = 14;
/** Maximum prepared statements to keep; more than we have different statements. */
const maxPrepared = 500;

interface Prepared {
  readonly statement: StatementSync;
  readonly columns: readonly ResultColumn[];
}

/**
 * A result column, and a function that converts its values to the declared type; undefined for computed
 * columns.
 */
interface ResultColumn {
  readonly name: string;
  readonly repair: ((value: SQLOutputValue) => SQLOutputValue) | undefined;
}

/**
 * Opens the file. A commit is on disk when it returns: SQLite syncs the write-ahead log at every commit
 * (https://sqlite.org/pragma.html#pragma_synchronous). Deleted data is overwritten (secure_delete).
 */
export function openSqliteFile({ path, readOnly, busyMs, identity }: SqliteFileOptions): SqliteFile {
  // SQLite would create a missing file.
  requireSame(path, identity);
  const opened = new DatabaseSync(path, { timeout: busyMs, readOnly });
  let logIdentity: string | undefined;
  if (!readOnly) {
    enterWriteAheadLog(opened, busyMs);
    opened.exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON");
    // Opens the log.
    opened.prepare("select 1 from sqlite_schema limit 1").all();
    logIdentity = identify(`${path}-wal`);
  }
  const file: OpenFile = { path, opened, identity, logIdentity, prepared: new Map() };
  return {
    run: (statements) => statements.map((one) => execute(file, one)),
    close: () => opened.close(),
  };
}

/**
 * Writes the readable part of a write-ahead log into the database and empties the log.
 *
 * @throws SQLite's own error, such as SQLITE_BUSY if another program has the database open
 */
export function cutLog(path: string): void {
  const opened = new DatabaseSync(path);
  try {
    // SQLite then uses no shared memory and locks out other programs (https://sqlite.org/wal.html#noshm).
    opened.exec("PRAGMA locking_mode = EXCLUSIVE");
    opened.prepare("select 1 from sqlite_schema limit 1").all();
    opened.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
  } finally {
    opened.close();
  }
}

/** Returns whether an error means that another program has the database open. */
export function isBusy(error: unknown): boolean {
  return readResultCode(error) === busyCode;
}

/** Returns whether an error means that the disk is full. */
export function isFull(error: unknown): boolean {
  return readResultCode(error) === fullCode;
}

/** Returns SQLite's extended result code; undefined if the error is not SQLite's. */
export function readResultCode(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
}

interface OpenFile {
  readonly path: string;
  readonly opened: DatabaseSync;
  readonly identity: string | undefined;
  /** Identity of the write-ahead log that a writer has open. */
  readonly logIdentity: string | undefined;
  readonly prepared: Map<string, Prepared>;
}

/** Switches to the write-ahead log. Retries here because this statement ignores the busy timeout. */
function enterWriteAheadLog(opened: DatabaseSync, busyMs: number): void {
  const endMs = performance.now() + busyMs;
  for (;;) {
    try {
      opened.exec("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() > endMs) throw error;
      // This thread has nothing else to do.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
}

function execute(file: OpenFile, { sql, parameters }: Statement): StatementResult {
  const ready = prepare(file, sql);
  if (sql === "commit") requireFiles(file);
  // SQLite itself rejects values of other types.
  const values = parameters as readonly SQLInputValue[];
  if (ready.columns.length === 0)
    return { rows: [], changedRows: Number(ready.statement.run(...values).changes) };
  const rows = readRows(ready.statement, values);
  for (const row of rows) repair(row, ready.columns);
  return { rows };
}

/**
 * Checks the files because SQLite would keep writing to a deleted or replaced file, and lose those writes.
 */
function requireFiles({ path, identity, logIdentity }: OpenFile): void {
  requireSame(path, identity);
  requireSame(`${path}-wal`, logIdentity);
}

function requireSame(path: string, identity: string | undefined): void {
  const found = identify(path);
  if (found === identity) return;
  const how = found === undefined ? "was removed" : "was replaced";
  throw Object.assign(new Error(`the store's file ${path} ${how}`), { errcode: canNotOpenCode });
}

function prepare({ opened, prepared }: OpenFile, sql: string): Prepared {
  let ready = prepared.get(sql);
  if (ready === undefined) {
    const statement = opened.prepare(sql);
    const columns = statement.columns().map(({ name, type }) => ({ name, repair: repairs[type ?? ""] }));
    ready = { statement, columns };
    if (prepared.size >= maxPrepared) prepared.clear();
    prepared.set(sql, ready);
  }
  return ready;
}

/**
 * SQLite accepts a value of any type in any column (https://sqlite.org/datatype3.html). Our values have their
 * column's declared type. A value written by someone other than the server is converted to some value of that
 * type, so that its record can be read and its tag shows the change.
 */
const repairs: Readonly<Record<string, (value: SQLOutputValue) => SQLOutputValue>> = {
  TEXT: (value) =>
    typeof value === "string"
      ? value
      : value instanceof Uint8Array
        ? Buffer.from(value).toString()
        : `${value}`,
  BLOB: (value) => (value instanceof Uint8Array ? value : Buffer.from(`${value}`)),
  INTEGER: (value) => (Number.isInteger(value) ? value : -1),
};

function repair(row: Record<string, SQLOutputValue>, columns: readonly ResultColumn[]): void {
  for (const { name, repair } of columns) {
    const value = row[name];
    if (repair && value !== null && value !== undefined) row[name] = repair(value);
  }
}

/**
 * Our integers stay below 2^53. A larger one was not written by the server, so its exact value does not
 * matter.
 */
function readRows(
  statement: StatementSync,
  values: readonly SQLInputValue[],
): Record<string, SQLOutputValue>[] {
  try {
    return statement.all(...values);
  } catch (error) {
    if (readErrorCode(error) !== "ERR_OUT_OF_RANGE") throw error;
    statement.setReadBigInts(true);
    try {
      const toNumber = ([name, value]: [string, SQLOutputValue]) => [
        name,
        typeof value === "bigint" ? Number(value) : value,
      ];
      return statement.all(...values).map((row) => Object.fromEntries(Object.entries(row).map(toNumber)));
    } finally {
      statement.setReadBigInts(false);
    }
  }
}
