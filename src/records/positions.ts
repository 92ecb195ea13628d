import { type Kysely, sql } from "kysely";
import type { Schema } from "../database/schema.ts";

/**
 * Larger numbers are not exact. A row above this was not written by the server and must not block new rows.
 */
const largestPosition = Number.MAX_SAFE_INTEGER;

/** Returns the position for a table's next row, within the transaction that inserts it. */
export async function nextPosition(db: Kysely<Schema>, table: string): Promise<number> {
  const { rows } = await sql<{ newest: number | null }>`
    select max(position) as newest from ${sql.table(table)} where position < ${largestPosition}`.execute(db);
  return (rows[0]?.newest ?? 0) + 1;
}
