/** The thread that owns a SQLite connection, so that only this thread waits for the disk. */
import { parentPort, workerData } from "node:worker_threads";
import type { Statement, StatementResult } from "./connection.ts";
import { openSqliteFile, readResultCode, type SqliteFile, type SqliteFileOptions } from "./sqlite-file.ts";

export type SqliteThreadOptions = SqliteFileOptions;

export interface SqliteRequest {
  readonly id: number;
  readonly statements: readonly Statement[];
}

/** The thread's reply. `resultCode` is SQLite's extended result code if SQLite failed. */
export type SqliteReply = { readonly id: number } & (
  | { readonly ok: true; readonly results: readonly StatementResult[] }
  | { readonly ok: false; readonly message: string; readonly resultCode: number | undefined }
);

let file: SqliteFile | undefined;

parentPort?.on("message", ({ id, statements }: SqliteRequest) => {
  parentPort?.postMessage(answer(id, statements));
});

function answer(id: number, statements: readonly Statement[]): SqliteReply {
  try {
    file ??= openSqliteFile(workerData as SqliteThreadOptions);
    return { id, ok: true, results: file.run(statements) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { id, ok: false, message, resultCode: readResultCode(error) };
  }
}
