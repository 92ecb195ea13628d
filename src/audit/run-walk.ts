/** Walks a log on a worker thread. */
import { Worker } from "node:worker_threads";
import type { DatabaseLocation } from "../database/database.ts";
import { StoreFailureError } from "../database/store-error.ts";
import { findThread } from "../program-files.ts";
import type { Walk, WalkInput } from "./walk.ts";
import type { WalkMessage, WalkThreadInput } from "./walk-thread.ts";

export interface WalkOptions {
  /** Called periodically with the number of entries so far. */
  readonly onPage: (entries: number) => void;
  /** Ends the thread. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Walks a log as `walkChain` does.
 *
 * @throws StoreFailureError, or the signal's reason
 */
export async function runWalk(
  location: DatabaseLocation,
  input: WalkInput,
  { onPage, signal }: WalkOptions,
): Promise<Walk | undefined> {
  signal?.throwIfAborted();
  const worker = new Worker(findThread("audit/walk-thread.ts"), {
    name: "audit walk",
    workerData: { location, ...input } satisfies WalkThreadInput,
    execArgv: [],
  });
  const ended = Promise.withResolvers<Walk | undefined>();
  const abort = (): void => ended.reject(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  worker.on("message", (message: WalkMessage) => {
    if (message.kind === "page") {
      if (!signal?.aborted) onPage(message.entries);
    } else if (message.kind === "end") ended.resolve(message.walk);
    else ended.reject(explain(message));
  });
  worker.on("error", ended.reject);
  worker.on("exit", (code) =>
    ended.reject(unavailable(`the audit verification thread exited with code ${code}`)),
  );
  try {
    return await ended.promise;
  } finally {
    signal?.removeEventListener("abort", abort);
    await worker.terminate();
  }
}

function explain({ code, message }: Extract<WalkMessage, { kind: "failure" }>): Error {
  return code === undefined ? new Error(message) : new StoreFailureError(code, new Error(message));
}

function unavailable(why: string): StoreFailureError {
  return new StoreFailureError("UNAVAILABLE", new Error(why));
}
