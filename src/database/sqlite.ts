/** SQLite (node:sqlite) on separate threads, so that the event loop never waits for the disk. */
import { Worker } from "node:worker_threads";
import { findThread } from "../program-files.ts";
import {
  type Connection,
  type Statement,
  type StatementResult,
  statement,
  type WriteConnection,
} from "./connection.ts";
import { identify } from "./file-identity.ts";
import { openSqliteFile, readResultCode, type SqliteFile } from "./sqlite-file.ts";
import type { SqliteReply, SqliteRequest, SqliteThreadOptions } from "./sqlite-thread.ts";
import { readMessage, type StoreFailureCode, StoreFailureError } from "./store-error.ts";

/** Milliseconds to wait while another program writes. */
const busyMs = 5000;

/**
 * Maximum consecutive threads that may end before answering anything. A fault in one call ends only one
 * thread.
 */
const maxBarrenThreads = 5;

/** Called with the reason if a database becomes unusable: every thread started for it has ended. */
export type OnLost = (error: Error) => void;

/** Opens a file for reading while another connection may write. */
export function openSqliteReader(path: string, onLost: OnLost = () => {}): Connection {
  return openThread({ path, readOnly: true, busyMs, identity: identify(path) }, onLost);
}

/**
 * Opens a file for reading in this thread, which blocks on the disk: use it in a thread that does nothing
 * else.
 */
export function openSqliteReaderHere(path: string): Connection {
  let file: SqliteFile | undefined;
  return {
    async run(statements) {
      try {
        file ??= openSqliteFile({ path, readOnly: true, busyMs, identity: identify(path) });
        return file.run(statements);
      } catch (error) {
        throw toFailure(readMessage(error), readResultCode(error));
      }
    },
    close: async () => file?.close(),
  };
}

/** Opens a file for writing. The file must exist, and may be empty. */
export function openSqliteWriter(path: string, onLost: OnLost = () => {}): WriteConnection {
  const thread = openThread({ path, readOnly: false, busyMs, identity: identify(path) }, onLost);
  /** The thread that the open transaction began on; the transaction ends with it. */
  let begunOn: number | undefined;
  /** Runs statements of the transaction, only on the thread that began it. */
  const runOn = async (statements: readonly Statement[]): Promise<StatementResult[]> => {
    if (begunOn === thread.ended()) return thread.run(statements);
    throw new StoreFailureError("UNAVAILABLE", new Error("the store's thread ended during a transaction"));
  };
  return {
    run: (statements) => (begunOn === undefined ? thread.run(statements) : runOn(statements)),
    async close() {
      // Erased data must not remain in the log.
      await thread.run([statement("pragma wal_checkpoint(truncate)")]).catch(() => {});
      await thread.close();
    },
    async begin(first) {
      const threadNow = thread.ended();
      // Immediate: a transaction that reads first could not write if another transaction wrote in between.
      const [, ...results] = await thread.run([statement("begin immediate"), ...first]);
      begunOn = threadNow;
      return results;
    },
    async commit(last) {
      await runOn([...last, statement("commit")]);
      begunOn = undefined;
    },
    async scrub() {
      // Do not wait for readers, which would block other writes.
      const truncating = thread.run([
        statement("pragma busy_timeout = 0"),
        statement("pragma wal_checkpoint(truncate)"),
      ]);
      // Separately, because truncating fails on a full disk. No other statement comes in between.
      const waitingAgain = thread.run([statement(`pragma busy_timeout = ${busyMs}`)]);
      const [[, truncated]] = await Promise.all([truncating, waitingAgain]);
      const [row] = (truncated?.rows ?? []) as { busy: number }[];
      return row?.busy === 0;
    },
    async rollback() {
      begunOn = undefined;
      // SQLite may already have rolled back, for example because the disk is full or the thread has ended.
      await thread.run([statement("rollback")]).catch(() => {});
    },
  };
}

/** A connection on a thread. A new thread replaces one that ended. */
interface ThreadConnection extends Connection {
  /** Returns how many threads have ended. */
  ended(): number;
}

interface Waiting {
  resolve(results: StatementResult[]): void;
  reject(error: Error): void;
}

function openThread(options: SqliteThreadOptions, onLost: OnLost): ThreadConnection {
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let worker: Worker | undefined;
  let endedThreads = 0;
  let barrenThreads = 0;
  /** Set once no further statement can run. */
  let end: Error | undefined;

  const rejectAll = (reason: Error): void => {
    for (const { reject } of waiting.values()) reject(new StoreFailureError("UNAVAILABLE", reason));
    waiting.clear();
  };
  const onExit = (reason: Error): void => {
    worker = undefined;
    endedThreads += 1;
    barrenThreads += 1;
    if (end === undefined && barrenThreads >= maxBarrenThreads) {
      end = new Error("the store's threads keep ending before they answer", { cause: reason });
      onLost(end);
    }
    // A write without an answer may be on disk. Its caller receives an error with an unknown outcome.
    rejectAll(end ?? reason);
  };
  /** Starts a thread that keeps the process alive only while it works. */
  const start = (): Worker => {
    const started = new Worker(findThread("database/sqlite-thread.ts"), {
      name: options.readOnly ? "sqlite reader" : "sqlite writer",
      workerData: options,
      execArgv: [],
    });
    started.unref();
    let fault: Error | undefined;
    started.on("message", (reply: SqliteReply) => {
      barrenThreads = 0;
      const asker = waiting.get(reply.id);
      waiting.delete(reply.id);
      // Node keeps the process alive while the thread ends; a late reply must not change that.
      if (waiting.size === 0 && end === undefined) started.unref();
      if (reply.ok) asker?.resolve([...reply.results]);
      else asker?.reject(toFailure(reply.message, reply.resultCode));
    });
    started.on("error", (error) => {
      fault = error instanceof Error ? error : new Error(String(error));
    });
    // Also emitted after an error. The thread has released the file by then.
    started.on("exit", (code) => onExit(fault ?? new Error(`the store's thread ended with code ${code}`)));
    return started;
  };
  return {
    run(statements) {
      return new Promise((resolve, reject) => {
        if (end) return reject(new StoreFailureError("UNAVAILABLE", end));
        worker ??= start();
        lastId += 1;
        if (waiting.size === 0) worker.ref();
        waiting.set(lastId, { resolve, reject });
        worker.postMessage({ id: lastId, statements: statements.map(toMessage) } satisfies SqliteRequest);
      });
    },
    ended: () => endedThreads,
    async close() {
      end ??= new Error("the store is closed");
      rejectAll(end);
      await worker?.terminate();
    },
  };
}

/** Copies views into larger buffers, because posting a view would copy its whole buffer. */
function toMessage({ sql, parameters }: Statement): Statement {
  const isView = (value: unknown): value is Uint8Array =>
    value instanceof Uint8Array && value.byteLength !== value.buffer.byteLength;
  return { sql, parameters: parameters.map((value) => (isView(value) ? Uint8Array.from(value) : value)) };
}

/** SQLITE_IOERR_SHMSIZE: no space for the log's index (https://sqlite.org/rescode.html). */
const noRoomForIndex = 4874;

/** Primary result codes that mean a database failure, not a wrong statement. */
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

function toFailure(message: string, resultCode = 0): Error {
  const error = Object.assign(new Error(message), { code: `SQLITE_${resultCode & 0xff}` });
  const code = resultCode === noRoomForIndex ? "FULL" : failureCodes[resultCode & 0xff];
  // Our statements use only tables and columns that the migrations created.
  if (/^no such (table|column)/.test(message)) return new StoreFailureError("CORRUPT", error);
  return code === undefined ? error : new StoreFailureError(code, error);
}
