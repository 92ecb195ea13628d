/** The thread that walks a log, so that a server's event loop does no per-entry work. */
import { parentPort, workerData } from "node:worker_threads";
import { type DatabaseLocation, openReaderHere } from "../database/database.ts";
import { readMessage, type StoreFailureCode, StoreFailureError } from "../database/store-error.ts";
import { type Walk, type WalkInput, walkChain } from "./walk.ts";

export interface WalkThreadInput extends WalkInput {
  readonly location: DatabaseLocation;
}

/** A message from the thread: its progress, and finally its result or the reason for its failure. */
export type WalkMessage =
  | { readonly kind: "page"; readonly entries: number }
  | { readonly kind: "end"; readonly walk: Walk | undefined }
  | { readonly kind: "failure"; readonly code: StoreFailureCode | undefined; readonly message: string };

const send = (message: WalkMessage): void => parentPort?.postMessage(message);
const { location, ...input } = workerData as WalkThreadInput;
const { reader, close } = openReaderHere(location);
try {
  send({ kind: "end", walk: await walkChain(reader, input, (entries) => send({ kind: "page", entries })) });
} catch (error) {
  const isFailure = error instanceof StoreFailureError;
  const message = readMessage(isFailure ? error.cause : error);
  send({ kind: "failure", code: isFailure ? error.code : undefined, message });
} finally {
  await close();
}
