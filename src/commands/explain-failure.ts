/** Says in a sentence what is wrong with a store, where a command or a start can not go on. */
import { statSync } from "node:fs";
import type { DatabaseLocation } from "../storage/database.ts";
import { notWhole } from "../storage/root-keys.ts";
import { messageOf, StorageError, StoreFailure } from "../storage/store-error.ts";

/** Names a store for the operator; never with a password. */
export function nameStore(location: DatabaseLocation): string {
  if (location.kind === "sqlite") return location.path;
  const { host, pathname } = new URL(location.url);
  return `postgres://${host}${pathname}`;
}

/** Makes a StorageError of what is the fault of the store; anything else is given back as it is. */
export function explainFailure(error: unknown, store: string): unknown {
  if (!(error instanceof StoreFailure)) return error;
  if (error.code === "CORRUPT") return notWhole(store, messageOf(error.cause));
  return new StorageError(`the store ${store} failed: ${error.message}${reasonOf(error.cause)}`);
}

/** Of several addresses that were tried, each has a reason of its own. */
function reasonOf(cause: unknown): string {
  if (cause instanceof AggregateError) return ` (${cause.errors.map(messageOf).join("; ")})`;
  return cause === undefined ? "" : ` (${messageOf(cause)})`;
}

/**
 * Refuses a store that is behind a directory which is not ours to read: it would look as if there were none.
 *
 * @throws StorageError
 */
export function requireReach(location: DatabaseLocation): void {
  if (location.kind !== "sqlite") return;
  try {
    statSync(location.path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "ENOENT")
      throw new StorageError(`the store ${location.path} can not be read: ${messageOf(error)}`);
  }
}
