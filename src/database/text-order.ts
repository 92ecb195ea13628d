/** Database-independent text order. */
import { PostgresAdapter, type RawBuilder, sql } from "kysely";
import type { Reader } from "./database.ts";

/** Compares a column's texts byte by byte, as SQLite does; PostgreSQL would compare by locale. */
export function orderByBytes(reader: Reader, column: string): RawBuilder<string> {
  const isPostgres = reader.getExecutor().adapter instanceof PostgresAdapter;
  return isPostgres ? sql<string>`${sql.ref(column)} collate "C"` : sql<string>`${sql.ref(column)}`;
}
