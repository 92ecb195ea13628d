/** SQLite (node:sqlite) on its own threads, so that the event loop never waits for the disk. */
import { Worker } from "node:worker_threads";
import { findThread } from "../program-files.ts";
import {
  type Connection,
  type Statement,
  type StatementResult,
  statement,
  type WriteConnection,
} from "./connection.ts";
import type { SqliteReply, SqliteRequest, SqliteThreadOptions } from "./sqlite-thread.ts";
import { type StoreFailureCode, StoreFailureError } from "./store-error.ts";

/** Milliseconds to wait while another program writes. */
const busyMs = 5000;

/** Opens a file for reading, while another connection may write. */
export function openSqliteReader(path: string): Connection {
  return openThread({ path, readOnly: true, busyMs });
}

/** Opens a file for writing, and creates it if it is missing. */
export function openSqliteWriter(path: string): WriteConnection {
  const thread = openThread({ path, readOnly: false, busyMs });
  return {
    run: thread.run,
    async close() {
      // Erased data must not stay in the log.
      await thread.run([statement("pragma wal_checkpoint(truncate)")]).catch(() => {});
      await thread.close();
    },
    async begin(first) {
      // Immediate: a transaction that reads first could not write if another one wrote in between.
      const [, ...results] = await thread.run([statement("begin immediate"), ...first]);
      return results;
    },
    async commit(last) {
      await thread.run([...last, statement("commit")]);
    },
    async scrub() {
      // Do not wait for readers: that would block other writes.
      const [, truncated] = await thread.run([
        statement("pragma busy_timeout = 0"),
        statement("pragma wal_checkpoint(truncate)"),
        statement(`pragma busy_timeout = ${busyMs}`),
      ]);
      const [row] = (truncated?.rows ?? []) as { busy: number }[];
      return row?.busy === 0;
    },
    async rollback() {
      // SQLite may have rolled it back already, for example when the disk is full.
      await thread.run([statement("rollback")]).catch(() => {});
    },
  };
}

interface Waiting {
  resolve(results: StatementResult[]): void;
  reject(error: Error): void;
}

/** Starts a thread that keeps the process alive only while it works. */
function openThread(options: SqliteThreadOptions): Connection {
  const worker = new Worker(findThread("database/sqlite-thread.ts"), {
    name: options.readOnly ? "sqlite reader" : "sqlite writer",
    workerData: options,
    execArgv: [],
  });
  worker.unref();
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let ended: Error | undefined;
  const end = (reason: Error): void => {
    ended ??= reason;
    for (const { reject } of waiting.values()) reject(new StoreFailureError("UNAVAILABLE", reason));
    waiting.clear();
  };
  worker.on("message", (reply: SqliteReply) => {
    const asker = waiting.get(reply.id);
    waiting.delete(reply.id);
    // While the thread ends, Node holds the process for it. A reply that arrives late must not let go of it.
    if (waiting.size === 0 && ended === undefined) worker.unref();
    if (reply.ok) asker?.resolve([...reply.results]);
    else asker?.reject(toFailure(reply));
  });
  worker.on("error", end);
  worker.on("exit", (code) => end(new Error(`the thread of the store ended with code ${code}`)));
  return {
    run(statements) {
      return new Promise((resolve, reject) => {
        if (ended) return reject(new StoreFailureError("UNAVAILABLE", ended));
        lastId += 1;
        if (waiting.size === 0) worker.ref();
        waiting.set(lastId, { resolve, reject });
        worker.postMessage({ id: lastId, statements: statements.map(toMessage) } satisfies SqliteRequest);
      });
    },
    async close() {
      end(new Error("the store is closed"));
      await worker.terminate();
    },
  };
}

/** Copies views into larger buffers, because posting a view would copy its whole buffer. */
function toMessage({ sql, parameters }: Statement): Statement {
  const isView = (value: unknown): value is Uint8Array =>
    value instanceof Uint8Array && value.byteLength !== value.buffer.byteLength;
  return { sql, parameters: parameters.map((value) => (isView(value) ? Uint8Array.from(value) : value)) };
}

/** SQLITE_IOERR_SHMSIZE: no space for the index of the log (https://sqlite.org/rescode.html). */
const noRoomForIndex = 4874;

/** The primary result codes that are the database's fault, not the statement's. */
const failureCodes: Readonly<Record<number, StoreFailureCode>> = {
  5: "UNAVAILABLE", // SQLITE_BUSY
  6: "UNAVAILABLE", // SQLITE_LOCKED
  7: "UNAVAILABLE", // SQLITE_NOMEM
  8: "UNAVAILABLE", // SQLITE_READONLY
  10: "UNAVAILABLE", // SQLITE_IOERR
  11: "CORRUPT", // SQLITE_CORRUPT
  13: "FULL", // SQLITE_FULL
  14: "UNAVAILABLE", // SQLITE_CANTOPEN
  26: "CORRUPT", // SQLITE_NOTADB
};

function toFailure({ message, resultCode = 0 }: Extract<SqliteReply, { ok: false }>): Error {
  const error = Object.assign(new Error(message), { code: `SQLITE_${resultCode & 0xff}` });
  const code = resultCode === noRoomForIndex ? "FULL" : failureCodes[resultCode & 0xff];
  // Our statements use only tables and columns that the migrations created.
  if (/^no such (table|column)/.test(message)) return new StoreFailureError("CORRUPT", error);
  return code === undefined ? error : new StoreFailureError(code, error);
}
