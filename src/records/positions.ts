import { type Kysely, sql } from "kysely";
import type { Schema } from "../database/schema.ts";

/** Beyond it numbers are not exact; a row that is there was put there by somebody else, and must not hold up others. */
const largestPosition = Number.MAX_SAFE_INTEGER;

/** The position of the next row of a table with positions, within the transaction that puts it in. */
export async function nextPosition(db: Kysely<Schema>, table: string): Promise<number> {
  const { rows } = await sql<{ newest: number | null }>`
    select max(position) as newest from ${sql.table(table)} where position < ${largestPosition}`.execute(db);
  return (rows[0]?.newest ?? 0) + 1;
}
