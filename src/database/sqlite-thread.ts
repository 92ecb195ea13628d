/** The thread that owns a SQLite connection: only this thread waits for the disk. */
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { Statement, StatementResult } from "./connection.ts";
import { identify } from "./file-identity.ts";

/** The options of the thread. */
export interface SqliteThreadOptions {
  readonly path: string;
  readonly readOnly: boolean;
  /** Milliseconds to wait while another program writes. */
  readonly busyMs: number;
  /** The file at the path, see file-identity.ts. A thread that takes the place of another one opens no other file. */
  readonly identity: string | undefined;
}

/** A message to the thread. */
export interface SqliteRequest {
  readonly id: number;
  readonly statements: readonly Statement[];
}

/** The thread's reply; `resultCode` is SQLite's extended result code, if SQLite failed. */
export type SqliteReply = { readonly id: number } & (
  | { readonly ok: true; readonly results: readonly StatementResult[] }
  | { readonly ok: false; readonly message: string; readonly resultCode: number | undefined }
);

/** SQLITE_BUSY (https://sqlite.org/rescode.html#busy). */
const busyCode = 5;
/** SQLITE_CANTOPEN. */
const canNotOpenCode = 14;
/** The most prepared statements to keep; we have fewer different statements. */
const maxPrepared = 500;

/** A statement and its result columns. */
interface Prepared {
  readonly statement: StatementSync;
  readonly columns: readonly ResultColumn[];
}

/** A result column, and the function that converts its values to its declared type; undefined if it is computed. */
interface ResultColumn {
  readonly name: string;
  readonly repair: ((value: SQLOutputValue) => SQLOutputValue) | undefined;
}

const prepared = new Map<string, Prepared>();
let database: DatabaseSync | undefined;
/** The write-ahead log that this thread has open. */
let logIdentity: string | undefined;

parentPort?.on("message", ({ id, statements }: SqliteRequest) => {
  parentPort?.postMessage(answer(id, statements));
});

function answer(id: number, statements: readonly Statement[]): SqliteReply {
  try {
    database ??= open(workerData as SqliteThreadOptions);
    const opened = database;
    return { id, ok: true, results: statements.map((one) => execute(opened, one)) };
  } catch (error) {
    const resultCode = error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
    return { id, ok: false, message: error instanceof Error ? error.message : String(error), resultCode };
  }
}

/**
 * Opens the file. A commit is on the disk when it returns: SQLite syncs the write-ahead log at every commit
 * (https://sqlite.org/pragma.html#pragma_synchronous). Deleted data is overwritten (secure_delete).
 */
function open({ path, readOnly, busyMs }: SqliteThreadOptions): DatabaseSync {
  // SQLite would create a missing file.
  requireFile();
  const opened = new DatabaseSync(path, { timeout: busyMs, readOnly });
  if (readOnly) return opened;
  enterWriteAheadLog(opened, busyMs);
  opened.exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON");
  // Opens the log.
  opened.prepare("select 1 from sqlite_schema limit 1").all();
  logIdentity = identify(`${path}-wal`);
  return opened;
}

/** Switches to the write-ahead log. This statement ignores the busy timeout, so it is retried here. */
function enterWriteAheadLog(opened: DatabaseSync, busyMs: number): void {
  const endMs = performance.now() + busyMs;
  for (;;) {
    try {
      opened.exec("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      const isBusy = error instanceof Error && "errcode" in error && error.errcode === busyCode;
      if (!isBusy || performance.now() > endMs) throw error;
      // This thread has nothing else to do.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
}

function execute(opened: DatabaseSync, { sql, parameters }: Statement): StatementResult {
  const ready = prepare(opened, sql);
  if (sql === "commit") requireFiles();
  // SQLite itself refuses values of other types.
  const values = parameters as readonly SQLInputValue[];
  if (ready.columns.length === 0)
    return { rows: [], changedRows: Number(ready.statement.run(...values).changes) };
  const rows = readRows(ready.statement, values);
  for (const row of rows) repair(row, ready.columns);
  return { rows };
}

/** Checks the files, because SQLite keeps writing to a deleted or replaced one, and those writes would be lost. */
function requireFiles(): void {
  requireFile();
  const { path } = workerData as SqliteThreadOptions;
  requireSame(`${path}-wal`, logIdentity);
}

function requireFile(): void {
  const { path, identity } = workerData as SqliteThreadOptions;
  requireSame(path, identity);
}

function requireSame(path: string, identity: string | undefined): void {
  const found = identify(path);
  if (found === identity) return;
  const how = found === undefined ? "is gone" : "is another one";
  throw Object.assign(new Error(`the store's file ${path} ${how}`), { errcode: canNotOpenCode });
}

function prepare(opened: DatabaseSync, sql: string): Prepared {
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
 * SQLite accepts a value of any type in any column (https://sqlite.org/datatype3.html). Our values have the declared
 * type of their column. A value written outside of the server becomes some value of that type, so that its record
 * can be read, and its tag shows the change.
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

/** Our integers stay below 2^53. A larger one was written outside of the server, so its exact value does not matter. */
function readRows(
  statement: StatementSync,
  values: readonly SQLInputValue[],
): Record<string, SQLOutputValue>[] {
  try {
    return statement.all(...values);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ERR_OUT_OF_RANGE")) throw error;
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
