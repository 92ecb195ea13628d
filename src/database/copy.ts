/** Copies a store between databases of any kind. */
import { type Kysely, sql } from "kysely";
import { statement } from "./connection.ts";
import type { Database } from "./database.ts";
import { listTables, type Schema, type TableOwner } from "./schema.ts";
import { StorageError } from "./store-error.ts";

/** Rows per insert; with 11 values each, they stay below SQLite's limit of 32,766 values. */
const chunkRows = 500;

/** Called periodically with the number of copied rows and the total. */
export type CopyProgress = (copied: number, total: number) => void;

/**
 * Copies all rows in one transaction, from a snapshot of the source.
 *
 * @throws StorageError if the target already contains a store
 */
export async function copyStore(source: Database, target: Database, onProgress: CopyProgress): Promise<void> {
  await inSnapshot(source, async (reader) => {
    const total = await countRows(reader, source.owners);
    let copied = 0;
    await target.writer.transaction().execute(async (writer) => {
      if ((await countRows(writer, target.owners)) > 0)
        throw new StorageError(`${target.name} already contains a store`);
      for (const [table, key] of listTables(source.owners)) {
        for await (const rows of readChunks(reader, table, key)) {
          // The rows come from the table with the same name.
          await writer
            .insertInto(table)
            .values(rows as never)
            .execute();
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
export async function countRows(db: Kysely<Schema>, owners: readonly TableOwner[]): Promise<number> {
  let total = 0;
  for (const [table] of listTables(owners)) {
    const { count } = await db
      .selectFrom(table)
      .select((row) => row.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
    total += count;
  }
  return total;
}

/** Reads a table in key order, in chunks. */
async function* readChunks(
  db: Kysely<Schema>,
  table: keyof Schema,
  key: readonly string[],
): AsyncGenerator<readonly Record<string, unknown>[]> {
  const columns = sql.join(key.map((name) => sql.ref(name)));
  let last: Record<string, unknown> | undefined;
  for (;;) {
    const after = last && sql`where (${columns}) > (${sql.join(key.map((name) => last?.[name]))})`;
    const { rows } = await sql<Record<string, unknown>>`
      select * from ${sql.table(table)} ${after ?? sql``} order by ${columns} limit ${chunkRows}`.execute(db);
    if (rows.length > 0) yield rows;
    if (rows.length < chunkRows) return;
    last = rows.at(-1);
  }
}
