/** The thread that owns a SQLite file: it alone waits for the disk. */
import { statSync } from "node:fs";
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { Statement, StatementResult } from "./connection.ts";

/** What the thread is started with. */
export interface SqliteThreadOptions {
  readonly path: string;
  readonly readOnly: boolean;
  /** Milliseconds to wait for another program that writes. */
  readonly busyMs: number;
}

/** What the thread is sent. */
export interface SqliteRequest {
  readonly id: number;
  readonly statements: readonly Statement[];
}

/** What it sends back; `resultCode` is SQLite's extended result code, if SQLite failed. */
export type SqliteReply = { readonly id: number } & (
  | { readonly ok: true; readonly results: readonly StatementResult[] }
  | { readonly ok: false; readonly message: string; readonly resultCode: number | undefined }
);

/** SQLITE_BUSY (https://sqlite.org/rescode.html#busy). */
const busyCode = 5;
/** SQLITE_CANTOPEN. */
const canNotOpenCode = 14;
/** Prepared statements to keep; the texts of ours are fewer. */
const maxPrepared = 500;

/** A statement, and the columns that it gives. */
interface Prepared {
  readonly statement: StatementSync;
  readonly columns: readonly ResultColumn[];
}

/** A column of a result, and what makes its values those of its type; none where it is computed. */
interface ResultColumn {
  readonly name: string;
  readonly repair: ((value: SQLOutputValue) => SQLOutputValue) | undefined;
}

const prepared = new Map<string, Prepared>();
let database: DatabaseSync | undefined;
/** Of the file that was opened. */
let identity: string | undefined;

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
 * Opens the file. A commit is on the disk when it returns: write-ahead log, and a sync of it at every commit
 * (https://sqlite.org/pragma.html#pragma_synchronous). What is deleted is overwritten (secure_delete).
 */
function open({ path, readOnly, busyMs }: SqliteThreadOptions): DatabaseSync {
  const opened = new DatabaseSync(path, { timeout: busyMs, readOnly });
  identity = identify(path);
  if (readOnly) return opened;
  enterWriteAheadLog(opened, busyMs);
  opened.exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON");
  return opened;
}

/** The change of the journal does not wait for its turn as everything else does, so it is tried again. */
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
  if (sql === "commit") requireFile();
  // What SQLite does not take, it refuses by itself.
  const values = parameters as readonly SQLInputValue[];
  if (ready.columns.length === 0)
    return { rows: [], changedRows: Number(ready.statement.run(...values).changes) };
  const rows = readRows(ready.statement, values);
  for (const row of rows) repair(row, ready.columns);
  return { rows };
}

/** SQLite goes on writing into a file that was deleted or replaced, and all of that would be lost. */
function requireFile(): void {
  const { path } = workerData as SqliteThreadOptions;
  const found = identify(path);
  if (found === identity) return;
  const how = found === undefined ? "is gone" : "is another one";
  throw Object.assign(new Error(`the store's file ${path} ${how}`), { errcode: canNotOpenCode });
}

function identify(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
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
 * SQLite keeps a value of any type in a column of any type (https://sqlite.org/datatype3.html). Values of ours are of
 * the type that their column declares; what somebody else put there becomes some value of that type, so that its
 * record can be read, and its tag can tell.
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

/** Whole numbers of ours stay below 2^53; of one that somebody made larger we need to know only that. */
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
