/** Reads and counts the rows of any query. */
import { type SelectQueryBuilder, sql } from "kysely";

/**
 * Reads all rows of a query in key order, in chunks.
 *
 * @param key columns that identify a row, which the query selects; none if there is at most one row
 */
export async function* readChunks<DB, Tables extends keyof DB, Row extends object>(
  query: SelectQueryBuilder<DB, Tables, Row>,
  key: readonly (keyof Row & string)[],
  chunkRows: number,
): AsyncGenerator<readonly Row[]> {
  const columns = sql.join(key.map((name) => sql.ref(name)));
  const inOrder = (key.length > 0 ? query.orderBy(columns) : query).limit(chunkRows);
  let last: Row | undefined;
  for (;;) {
    const after = last && sql.join(key.map((name) => last?.[name]));
    const rest = after === undefined ? inOrder : inOrder.where(sql<boolean>`(${columns}) > (${after})`);
    const rows: Row[] = await rest.execute();
    if (rows.length > 0) yield rows;
    if (rows.length < chunkRows) return;
    last = rows.at(-1);
  }
}

/** Counts the rows of a query. */
export async function countRows<DB, Tables extends keyof DB>(
  query: SelectQueryBuilder<DB, Tables, object>,
): Promise<number> {
  const counted = query.select(sql<number>`count(*)`.as("count")).$castTo<{ count: number }>();
  return (await counted.executeTakeFirstOrThrow()).count;
}
