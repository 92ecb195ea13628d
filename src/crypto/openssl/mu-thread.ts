import { parentPort } from "node:worker_threads";
import { wipeDeep } from "../bytes.ts";
import { CryptoError } from "../crypto-error.ts";
import { operations } from "../noble/operations.ts";
import type { WorkerReply, WorkerRequest } from "./mu-workers.ts";

/**
 * The thread of one worker: answers one request at a time. Input and result are copies that belong
 * to this thread, so both are wiped as soon as the reply, itself a copy, is sent.
 */
parentPort?.on("message", ({ operation, input }: WorkerRequest) => {
  const reply = answer(operation, input);
  parentPort?.postMessage(reply);
  wipeDeep(input);
  wipeDeep(reply);
});

function answer(operation: WorkerRequest["operation"], input: unknown): WorkerReply {
  try {
    // The pool pairs every operation with its own input; the types do not survive the thread boundary.
    const run = operations[operation] as (input: unknown) => unknown;
    return { ok: true, result: run(input) };
  } catch (error) {
    if (error instanceof CryptoError) return { ok: false, code: error.code, message: error.message };
    return { ok: false, code: undefined, message: String(error) };
  }
}
