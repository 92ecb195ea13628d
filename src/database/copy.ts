/** Copies a store between databases of any kind. */
import type { Kysely } from "kysely";
import { statement } from "./connection.ts";
import { alreadyHasStore, type Database } from "./database.ts";
import { countRows, readChunks } from "./read-rows.ts";
import { anyTable, listTables, type Schema, type TableOwner } from "./schema.ts";

/** Rows per insert; with 11 values each, they stay below SQLite's limit of 32,766 values. */
const chunkRows = 500;
/** The same for large rows: each is in memory several times, in threads and messages between them. */
const largeChunkRows = 8;

/** Called periodically with the number of copied rows and the total. */
export type CopyProgress = (copied: number, total: number) => void;

/**
 * Copies all rows in one transaction, from a snapshot of the source.
 *
 * @throws StorageError if the target already contains a store
 */
export async function copyStore(source: Database, target: Database, onProgress: CopyProgress): Promise<void> {
  await inSnapshot(source, async (reader) => {
    const total = await countAllRows(reader, source.owners);
    const large = new Set(source.owners.flatMap(({ largeTables = [] }) => largeTables));
    let copied = 0;
    await target.writer.transaction().execute(async (writer) => {
      if ((await countAllRows(writer, target.owners)) > 0) throw alreadyHasStore(target.name);
      for (const [table, key] of listTables(source.owners)) {
        const all = anyTable(reader).selectFrom(table).selectAll();
        for await (const rows of readChunks(all, key, large.has(table) ? largeChunkRows : chunkRows)) {
          await anyTable(writer).insertInto(table).values(rows).execute();
          copied += rows.length;
          onProgress(copied, total);
        }
      }
    });
  });
}

/** Runs work on a database snapshot, unaffected by concurrent writes. */
async function inSnapshot(
  { kind, reader, readConnection, writer, writeConnection }: Database,
  work: (db: Kysely<Schema>) => Promise<void>,
): Promise<void> {
  if (kind === "sqlite") {
    await readConnection.run([statement("begin")]);
    try {
      return await work(reader);
    } finally {
      await readConnection.run([statement("rollback")]);
    }
  }
  // PostgreSQL reads through a pool. The single write connection can also read, in one transaction.
  await writeConnection.begin([], "begin isolation level repeatable read read only");
  try {
    await work(writer);
  } finally {
    await writeConnection.rollback();
  }
}

/** Counts the rows of all tables. */
export async function countAllRows(db: Kysely<Schema>, owners: readonly TableOwner[]): Promise<number> {
  let total = 0;
  for (const [table] of listTables(owners)) total += await countRows(db.selectFrom(table));
  return total;
}
