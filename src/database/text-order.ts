/** The order of texts, which must not depend on the database. */
import { PostgresAdapter, type RawBuilder, sql } from "kysely";
import type { Reader } from "./database.ts";

/** Compares the texts of a column byte by byte, as SQLite does. PostgreSQL compares as its language does. */
export function orderByBytes(reader: Reader, column: string): RawBuilder<string> {
  const isPostgres = reader.getExecutor().adapter instanceof PostgresAdapter;
  return isPostgres ? sql<string>`${sql.ref(column)} collate "C"` : sql<string>`${sql.ref(column)}`;
}
