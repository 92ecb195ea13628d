/** What is in the tables of a store, read straight from the database. */

import type { Place, Row } from "./on-both.ts";
import { tableNames } from "./open-store.ts";

/** The names of all tables that there are, also of those that are not ours. */
export async function readTableNames({ location, query }: Place): Promise<string[]> {
  const catalog =
    location.kind === "sqlite"
      ? "select name from sqlite_master where type = 'table'"
      : "select table_name as name from information_schema.tables where table_schema = 'public'";
  return (await query(catalog)).map(({ name }) => String(name));
}

/** All rows of all tables, each table sorted by what its rows hold. */
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
