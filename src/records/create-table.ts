/** Builds the statements that create tables from their declarations. */
import type { SqlTypes } from "../database/schema.ts";
import { type Columns, column } from "./columns.ts";
import { defaultTagColumn } from "./table-declaration.ts";

export interface NewTable<C extends Columns> {
  readonly name: string;
  /** In table order. `added` columns are omitted: a later step adds them. */
  readonly columns: C;
  /** Properties that identify a row. */
  readonly key: readonly (keyof C & string)[];
}

/** A record table to create, such as a `TableDeclaration`. Its position and tag columns are implied. */
export interface NewRecordTable<C extends Columns> extends NewTable<C> {
  /** Column that orders lists; if omitted, the table gets a position column. */
  readonly orderedBy?: string;
  /** Default: "record_tag". */
  readonly tagColumn?: string;
}

type AnyColumn = Columns[string];

/** Builds a table whose primary key is the key. */
export function createTable<C extends Columns>(types: SqlTypes, { name, columns, key }: NewTable<C>): string {
  return writeTable(types, name, columns, key, "primary key");
}

/**
 * Builds a record table. The tag is its last column. If positions order its lists, the position is the first
 * column and the primary key.
 */
export function createRecordTable<C extends Columns>(
  types: SqlTypes,
  { name, columns, key, orderedBy, tagColumn = defaultTagColumn }: NewRecordTable<C>,
): string {
  const tagged: Columns = { ...columns, tag: column.text(tagColumn) };
  return orderedBy === undefined
    ? writeTable(types, name, tagged, key, "unique", [`position ${types.integer} not null primary key`])
    : writeTable(types, name, tagged, key, "primary key");
}

function writeTable(
  types: SqlTypes,
  name: string,
  columns: Columns,
  key: readonly string[],
  keyRule: "primary key" | "unique",
  firstLines: readonly string[] = [],
): string {
  const keyColumns = key.map((property) => columns[property]?.name);
  const isWholeKey = (one: AnyColumn): boolean => keyColumns.length === 1 && keyColumns[0] === one.name;
  const define = (one: AnyColumn): string => {
    const rule = isWholeKey(one) ? ` ${keyRule}` : one.isUnique ? " unique" : "";
    return `${one.name} ${types[one.type]}${one.isNullable ? "" : " not null"}${rule}`;
  };
  const first = Object.values(columns).filter(({ tagging }) => tagging !== "added");
  const lastLines = keyColumns.length > 1 ? [`${keyRule} (${keyColumns.join(", ")})`] : [];
  const lines = [...firstLines, ...first.map(define), ...lastLines];
  return `create table ${name} (\n  ${lines.join(",\n  ")}\n)`;
}

/** Adds columns to a table. Columns that are not nullable are texts, empty in older rows. */
export function addColumns(types: SqlTypes, table: string, columns: readonly AnyColumn[]): string[] {
  return columns.map(
    ({ name, type, isNullable }) =>
      `alter table ${table} add column ${name} ${types[type]}${isNullable ? "" : " not null default ''"}`,
  );
}
