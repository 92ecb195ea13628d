/** Opens the database, and brings it to the schema that this program knows. */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { Kysely } from "kysely";
import { Migrator } from "kysely/migration";
import { migrations } from "./migrations.ts";
import { openSqlite } from "./sqlite.ts";

/** A key that signs, or has signed, tokens. Times are milliseconds since 1970, UTC. */
export interface IssuerKeysTable {
  /** The RFC 7638 thumbprint of the public key. */
  key_id: string;
  algorithm: string;
  public_key: Uint8Array;
  /** Which master key wrapped the data key. */
  master_key_id: string;
  wrapped_data_key: Uint8Array;
  sealed_seed: Uint8Array;
  created_at_ms: number;
  /** When it stopped signing; null for the one that signs. */
  retired_at_ms: number | null;
}

/** Every table. */
export interface Schema {
  issuer_keys: IssuerKeysTable;
}

/** The database of a server. `destroy()` closes it. */
export type Database = Kysely<Schema>;

/** Says why a store can not be used, in a sentence for the operator. */
export class StorageError extends Error {}

/** The file of the embedded store in a data directory. */
function databasePath(dataDir: string): string {
  return join(dataDir, "qsp.db");
}

/** Tells whether a data directory holds a store already. */
export function hasDatabase(dataDir: string): boolean {
  return existsSync(databasePath(dataDir));
}

/**
 * Opens the embedded store of a data directory and makes both where they are missing.
 *
 * @throws StorageError if it can not be opened, or was written by a newer version.
 */
export async function openDatabase(dataDir: string): Promise<Database> {
  const path = databasePath(dataDir);
  let database: Database | undefined;
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    database = new Kysely<Schema>({ dialect: await openSqlite(path) });
    await migrate(database);
    return database;
  } catch (error) {
    await database?.destroy();
    if (messageOf(error).includes("previously executed migration")) {
      throw new StorageError(
        `the store ${path} was written by a newer version of this program; use that one`,
      );
    }
    throw new StorageError(`the store ${path} can not be opened: ${messageOf(error)}`);
  }
}

/** Takes the steps that are missing. Of several programs that start at once, one takes them while the others wait. */
async function migrate(database: Database): Promise<void> {
  const provider = { getMigrations: async () => ({ ...migrations }) };
  await database.transaction().execute(async (transaction) => {
    const { error } = await new Migrator({ db: transaction, provider }).migrateToLatest();
    if (error !== undefined) throw error;
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
