/** Reads the tables of a store directly from the database. */

import type { Place, Row } from "./on-both.ts";
import { tableNames } from "./open-store.ts";

/** The names of all existing tables, including foreign ones. */
export async function readTableNames({ location, query }: Place): Promise<string[]> {
  const catalog =
    location.kind === "sqlite"
      ? "select name from sqlite_master where type = 'table'"
      : "select table_name as name from information_schema.tables where table_schema = 'public'";
  return (await query(catalog)).map(({ name }) => String(name));
}

/** All rows of all tables, each table sorted by row content. */
export async function readAllRows({ query }: Place): Promise<Record<string, Row[]>> {
  const found: Record<string, Row[]> = {};
  for (const table of tableNames) {
    const rows = await query(`select * from ${table}`);
    found[table] = rows
      .map((row) => [fingerprint(row), row] as const)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([, row]) => row);
  }
  return found;
}

function fingerprint(row: Row): string {
  return JSON.stringify(
    Object.keys(row)
      .sort()
      .map((name) => {
        const value = row[name];
        return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
      }),
  );
}
