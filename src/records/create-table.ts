/** The statements that create tables, from their declarations. */
import type { SqlTypes } from "../database/schema.ts";
import { type Columns, column } from "./columns.ts";
import { defaultTagColumn } from "./table-declaration.ts";

/** A table to create. */
export interface NewTable<C extends Columns> {
  readonly name: string;
  /** In the order of the table. Those that are `added` are left out: a later step adds them. */
  readonly columns: C;
  /** The values that identify a row. */
  readonly key: readonly (keyof C & string)[];
}

/** A table of records to create, such as a `TableDeclaration`, without its positions and tags. */
export interface NewRecordTable<C extends Columns> extends NewTable<C> {
  /** The column that orders lists; if omitted, the table has positions for it. */
  readonly orderedBy?: string;
  /** "record_tag" if omitted. */
  readonly tagColumn?: string;
}

type AnyColumn = Columns[string];

/** Creates a table whose primary key is the key. */
export function createTable<C extends Columns>(types: SqlTypes, { name, columns, key }: NewTable<C>): string {
  return writeTable(types, name, columns, key, "primary key");
}

/**
 * Creates a table of records. Its last column is the tag. If lists have the order of positions, these are the first column
 * and the primary key.
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

/** Adds columns to a table. Those that are not nullable are texts, empty in older rows. */
export function addColumns(types: SqlTypes, table: string, columns: readonly AnyColumn[]): string[] {
  return columns.map(
    ({ name, type, isNullable }) =>
      `alter table ${table} add column ${name} ${types[type]}${isNullable ? "" : " not null default ''"}`,
  );
}
