/** Explains in one sentence why a command or a server start cannot use a store. */

import {
  mayPass,
  readMessage,
  StorageError,
  StoreDamagedError,
  StoreFailureError,
} from "../../database/store-error.ts";

/** Converts a store failure to a StorageError; returns any other error unchanged. */
export function explainStoreFailure(error: unknown, store: string): unknown {
  if (!(error instanceof StoreFailureError)) return error;
  if (error.code === "CORRUPT") return new StoreDamagedError(store, readMessage(error.cause));
  const cause = error.cause === undefined ? "" : ` (${readMessage(error.cause)})`;
  const sentence = `the store ${store} failed: ${error.message}${cause}`;
  return new StorageError(sentence, { mayPass: mayPass(error) });
}
