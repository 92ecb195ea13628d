/** Says in a sentence what is wrong with a store, where a command or a start can not go on. */
import { statSync } from "node:fs";
import type { DatabaseLocation } from "../storage/database.ts";
import { messageOf, StorageError, StoreFailure } from "../storage/store-error.ts";

/** Names a store for the operator; never with a password. */
export function nameStore(location: DatabaseLocation): string {
  if (location.kind === "sqlite") return location.path;
  const { host, pathname } = new URL(location.url);
  return `postgres://${host}${pathname}`;
}

/** Makes a StorageError of what is the fault of the store; anything else is given back as it is. */
export function explainFailure(error: unknown, store: string): unknown {
  const cause = error instanceof StoreFailure ? error.cause : error;
  if (isPartMissing(cause))
    return new StorageError(`the store ${store} is not whole: ${messageOf(cause)}; restore a back-up`);
  if (error instanceof StoreFailure)
    return new StorageError(`the store ${store} failed: ${error.message}${reasonOf(cause)}`);
  return error;
}

/** Of several addresses that were tried, each has a reason of its own. */
function reasonOf(cause: unknown): string {
  if (cause instanceof AggregateError) return ` (${cause.errors.map(messageOf).join("; ")})`;
  return cause === undefined ? "" : ` (${messageOf(cause)})`;
}

/** SQLSTATEs undefined_table and undefined_column (PostgreSQL manual, appendix A); SQLite has words for it only. */
function isPartMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  return code === "42P01" || code === "42703" || /^no such (table|column):/.test(error.message);
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
