/** Says in a sentence what is wrong with a store, where a command or a start cannot go on. */

import { readMessage, StorageError, StoreFailureError } from "../../database/store-error.ts";
import { notWhole } from "../../secrets/root-keys.ts";

/** Makes a StorageError of what is the fault of the store; anything else is given back as it is. */
export function explainStoreFailure(error: unknown, store: string): unknown {
  if (!(error instanceof StoreFailureError)) return error;
  if (error.code === "CORRUPT") return notWhole(store, readMessage(error.cause));
  return new StorageError(`the store ${store} failed: ${error.message}${describeCause(error.cause)}`);
}

/** Of several addresses that were tried, each has a reason of its own. */
function describeCause(cause: unknown): string {
  if (cause instanceof AggregateError) return ` (${cause.errors.map(readMessage).join("; ")})`;
  return cause === undefined ? "" : ` (${readMessage(cause)})`;
}
