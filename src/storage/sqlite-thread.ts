/** The thread that owns a SQLite file: it alone waits for the disk. */
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { Statement, StatementResult } from "./connection.ts";

/** What the thread is started with. */
export interface SqliteThreadOptions {
  readonly path: string;
  readonly readOnly: boolean;
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

/** Milliseconds to wait for another program that writes. */
const busyMs = 5000;
/** SQLITE_BUSY (https://sqlite.org/rescode.html#busy). */
const busyCode = 5;
/** Prepared statements to keep; the texts of ours are fewer. */
const maxPrepared = 500;

const prepared = new Map<string, StatementSync>();
let database: DatabaseSync | undefined;

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
function open({ path, readOnly }: SqliteThreadOptions): DatabaseSync {
  const opened = new DatabaseSync(path, { timeout: busyMs, readOnly });
  if (readOnly) return opened;
  enterWriteAheadLog(opened);
  opened.exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON");
  return opened;
}

/** The change of the journal does not wait for its turn as everything else does, so it is tried again. */
function enterWriteAheadLog(opened: DatabaseSync): void {
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
  // What SQLite does not take, it refuses by itself.
  const values = parameters as readonly SQLInputValue[];
  if (ready.columns().length > 0) return { rows: readRows(ready, values) };
  return { rows: [], changedRows: Number(ready.run(...values).changes) };
}

function prepare(opened: DatabaseSync, sql: string): StatementSync {
  let ready = prepared.get(sql);
  if (ready === undefined) {
    ready = opened.prepare(sql);
    if (prepared.size >= maxPrepared) prepared.clear();
    prepared.set(sql, ready);
  }
  return ready;
}

/** Whole numbers of ours stay below 2^53; of one that somebody made larger we need to know only that. */
function readRows(ready: StatementSync, values: readonly SQLInputValue[]): readonly unknown[] {
  try {
    return ready.all(...values);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ERR_OUT_OF_RANGE")) throw error;
    ready.setReadBigInts(true);
    try {
      const toNumber = ([name, value]: [string, unknown]) => [
        name,
        typeof value === "bigint" ? Number(value) : value,
      ];
      return ready.all(...values).map((row) => Object.fromEntries(Object.entries(row).map(toNumber)));
    } finally {
      ready.setReadBigInts(false);
    }
  }
}
