/** The thread that walks a log, so that the event loop of a server does no work for each entry. */
import { parentPort, workerData } from "node:worker_threads";
import { type DatabaseLocation, openReaderHere } from "../database/database.ts";
import { readMessage, type StoreFailureCode, StoreFailureError } from "../database/store-error.ts";
import { type Walk, type WalkInput, walkChain } from "./walk.ts";

/** The data of the thread. */
export interface WalkThreadInput extends WalkInput {
  readonly location: DatabaseLocation;
}

/** A message of the thread: how far it is, and at the end what it found or why it failed. */
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
