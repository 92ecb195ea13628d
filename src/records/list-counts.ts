/** Row counts of lists, stored with the rows so that counting needs no scan. */
import { type Kysely, sql } from "kysely";
import type { Reader } from "../database/database.ts";
import { readUint32 } from "../database/row-values.ts";
import type { Schema } from "../database/schema.ts";
import { listSeenBy } from "./ownership.ts";

/**
 * Updates list counts, within the transaction that changes the lists.
 *
 * @param lists each list, with its filters, that contains the row; no duplicates
 * @param change the number of rows added; negative for removed rows
 */
export async function changeCounts(
  db: Kysely<Schema>,
  lists: readonly string[],
  change: number,
): Promise<void> {
  await db
    .insertInto("list_counts")
    .values(lists.map((list) => ({ list_name: list, row_count: change })))
    .onConflict((conflict) =>
      conflict.column("list_name").doUpdateSet({ row_count: sql`list_counts.row_count + ${change}` }),
    )
    .execute();
}

/**
 * Updates the count of an owner's rows in a list that no table counts, within the transaction that changes
 * them.
 */
export function countForOwner(
  db: Kysely<Schema>,
  { list }: { readonly list: string },
  owner: string,
  change: number,
): Promise<void> {
  return changeCounts(db, [listSeenBy({ owner }, list)], change);
}

/**
 * Sets the counts of a list and all its filtered variants, within a transaction.
 *
 * @param list the list's name, with which the names of its filtered variants start
 */
export async function resetCounts(
  db: Kysely<Schema>,
  list: string,
  counts: ReadonlyMap<string, number>,
): Promise<void> {
  const rows = [...counts].map(([list_name, row_count]) => ({ list_name, row_count }));
  await db
    .deleteFrom("list_counts")
    .where((row) => row.or([row("list_name", "=", list), row("list_name", "like", `${list} %`)]))
    .execute();
  if (rows.length > 0) await db.insertInto("list_counts").values(rows).execute();
}

/** Reads the number of rows in a list. */
export async function readCount(db: Reader, list: string): Promise<number> {
  const row = await db
    .selectFrom("list_counts")
    .select("row_count")
    .where("list_name", "=", list)
    .executeTakeFirst();
  return readUint32(row?.row_count ?? 0);
}
