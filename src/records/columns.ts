/**
 * Table columns: how a row stores a value, and what the value contributes to the record's tag. The statements
 * that create a table (create-table.ts) and its row types are derived from them.
 */
import { readInt32, readOptionalTime, readTime, readUint32 } from "../database/row-values.ts";
import type { TagField } from "./tag.ts";

/** Values that databases store in a column. */
export type ColumnValue = string | number | Uint8Array | null;

/** Storage type of a column; its SQL name depends on the database. */
export type ColumnType = "text" | "integer" | "bytes";

/** A column with type `Value` in records and `Raw` in rows. */
export interface Column<Name extends string, Value, Raw extends ColumnValue> {
  readonly name: Name;
  readonly type: ColumnType;
  readonly isNullable?: boolean;
  /** Whether values must be unique. */
  readonly isUnique?: boolean;
  toRow(value: Value): Raw;
  /**
   * Accepts every value: one that no message can represent was not written by the server, and the tag detects
   * it.
   */
  fromRow(raw: Raw): Value;
  listTagFields(value: Value): readonly TagField[];
  /**
   * How the tag treats the column, unless it is a field that is always present: see `added` and `untagged`.
   */
  readonly tagging?: "added" | "never";
}

/** A table's columns by property name, in tag order. */
export type Columns = Readonly<Record<string, Column<string, unknown, ColumnValue>>>;

export type RecordOf<C extends Columns> = { readonly [P in keyof C]: ReturnType<C[P]["fromRow"]> };

export type RowOf<C extends Columns> = { [P in keyof C as C[P]["name"]]: ReturnType<C[P]["toRow"]> };

/** A row whose columns are known only at run time. */
export type AnyRow = Record<string, ColumnValue>;

export type TaggedRow<C extends Columns> = RowOf<C> & { record_tag: string };

/** A tagged row in a list. Positions start at 1 and follow insertion order. */
export type ListedRow<C extends Columns> = TaggedRow<C> & { position: number };

/** Text, or a union of strings; the tag ensures that the value is one of them. */
function text<Name extends string, Value extends string = string>(name: Name): Column<Name, Value, string> {
  return {
    name,
    type: "text",
    toRow: (value) => value,
    fromRow: (raw) => raw as Value,
    listTagFields: (value) => [value],
  };
}

/** One of several strings; any other string is read as the first. */
function choice<Name extends string, const Value extends string>(
  name: Name,
  values: readonly [Value, ...Value[]],
): Column<Name, Value, string> {
  const read = (raw: string): Value => values.find((value) => value === raw) ?? values[0];
  return { ...text<Name, Value>(name), fromRow: read };
}

/** A value that rows store unchanged. */
function plain<Name extends string, Value extends TagField>(
  name: Name,
  type: ColumnType,
): Column<Name, Value, Value> {
  return { name, type, toRow: (value) => value, fromRow: (raw) => raw, listTagFields: (value) => [value] };
}

function bytes<Name extends string>(name: Name): Column<Name, Uint8Array, Uint8Array> {
  return plain(name, "bytes");
}

/** Stored as 1 or 0. */
function flag<Name extends string>(name: Name): Column<Name, boolean, number> {
  const toRow = (value: boolean): number => (value ? 1 : 0);
  const fromRow = (raw: number): boolean => raw === 1;
  return { name, type: "integer", toRow, fromRow, listTagFields: (value) => [toRow(value)] };
}

/** A flag that adds its name to the tag if it is set, and otherwise nothing. */
function namedFlag<Name extends string>(name: Name, tagged: string): Column<Name, boolean, number> {
  return { ...flag(name), listTagFields: (value) => (value ? [tagged] : []) };
}

/** A flag that is rarely set; its tag field is empty unless it is. */
function optionalFlag<Name extends string>(name: Name): Column<Name, boolean, number | null> {
  return {
    name,
    type: "integer",
    isNullable: true,
    toRow: (value) => (value ? 1 : null),
    fromRow: (raw) => raw === 1,
    listTagFields: (value) => [value ? 1 : ""],
  };
}

function integer<Name extends string>(name: Name): Column<Name, number, number> {
  return plain(name, "integer");
}

/** A non-negative number that fits an int32 field. */
function int32<Name extends string>(name: Name): Column<Name, number, number> {
  return { ...integer(name), fromRow: readInt32 };
}

/** Stored as milliseconds since 1970, UTC. */
function time<Name extends string>(name: Name): Column<Name, Date, number> {
  const toRow = (value: Date): number => value.getTime();
  return { name, type: "integer", toRow, fromRow: readTime, listTagFields: (value) => [toRow(value)] };
}

/** A time that may be unset, with an empty tag field. */
function optionalTime<Name extends string>(name: Name): Column<Name, Date | undefined, number | null> {
  return {
    name,
    type: "integer",
    isNullable: true,
    toRow: (value) => value?.getTime() ?? null,
    fromRow: readOptionalTime,
    listTagFields: (value) => [value?.getTime() ?? ""],
  };
}

/** A value that may be missing, with an empty tag field. */
function optional<Name extends string, Value extends string | number>(
  name: Name,
  type: ColumnType,
  read: (raw: Value) => Value | undefined = (raw) => raw,
): Column<Name, Value | undefined, Value | null> {
  return {
    name,
    type,
    isNullable: true,
    toRow: (value) => value ?? null,
    fromRow: (raw) => (raw === null ? undefined : read(raw)),
    listTagFields: (value) => [value ?? ""],
  };
}

function optionalText<Name extends string>(name: Name): Column<Name, string | undefined, string | null> {
  return optional(name, "text");
}

/** One of several strings, or undefined; any other string is read as undefined. */
function optionalChoice<Name extends string, const Value extends string>(
  name: Name,
  values: readonly Value[],
): Column<Name, Value | undefined, string | null> {
  const read = (raw: string | null): Value | undefined => values.find((value) => value === raw);
  return { ...optional<Name, Value>(name, "text"), fromRow: read };
}

function optionalInteger<Name extends string>(name: Name): Column<Name, number | undefined, number | null> {
  return optional(name, "integer");
}

function optionalUint32<Name extends string>(name: Name): Column<Name, number | undefined, number | null> {
  return optional(name, "integer", readUint32);
}

/** Strings as a JSON array. */
function jsonList<Name extends string>(name: Name): Column<Name, readonly string[], string> {
  const toRow = (value: readonly string[]): string => JSON.stringify(value);
  return { name, type: "text", toRow, fromRow: readStrings, listTagFields: (value) => [toRow(value)] };
}

function readStrings(json: string): string[] {
  try {
    const parsed: unknown = JSON.parse(json);
    return Array.isArray(parsed) ? parsed.map(String) : [];
  } catch {
    return [];
  }
}

/** Strings without spaces, separated by spaces. */
function spacedList<Name extends string>(name: Name): Column<Name, readonly string[], string> {
  const toRow = (value: readonly string[]): string => value.join(" ");
  const fromRow = (raw: string | null): string[] => (raw ? raw.split(" ") : []);
  return { name, type: "text", toRow, fromRow, listTagFields: (value) => [toRow(value)] };
}

/** Strings by name, as a JSON object in name order; empty text if there are none. */
function textMap<Name extends string>(name: Name): Column<Name, TextMap, string> {
  const toRow = (value: TextMap): string => {
    const pairs = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return pairs.length === 0 ? "" : JSON.stringify(Object.fromEntries(pairs));
  };
  return { name, type: "text", toRow, fromRow: readTextMap, listTagFields: (value) => [toRow(value)] };
}

export type TextMap = Readonly<Record<string, string>>;

function readTextMap(json: string): TextMap {
  try {
    const parsed: unknown = JSON.parse(json === "" ? "{}" : json);
    const pairs = Object.entries(parsed ?? {}).map(([name, value]) => [name, String(value)]);
    return Object.fromEntries(pairs);
  } catch {
    return {};
  }
}

/** Requires unique values. */
function unique<Name extends string, Value, Raw extends ColumnValue>(
  column: Column<Name, Value, Raw>,
): Column<Name, Value, Raw> {
  return { ...column, isUnique: true };
}

/** Leaves a column out of the tag, so the tag does not detect changes to it. */
function untagged<Name extends string, Value, Raw extends ColumnValue>(
  column: Column<Name, Value, Raw>,
): Column<Name, Value, Raw> {
  return { ...column, listTagFields: () => [], tagging: "never" };
}

/**
 * A column that was added after the table was released. Without a value it adds nothing to the tag, so the
 * tags of older rows stay valid. With a value it adds its name and the value.
 *
 * @param column an optional column, or a list or map that is empty by default
 */
function added<Name extends string, Value, Raw extends ColumnValue>(
  column: Column<Name, Value, Raw>,
): Column<Name, Value, Raw> {
  const listTagFields = (value: Value): TagField[] => {
    const fields = column.listTagFields(value);
    return fields.every((field) => field === "") ? [] : [column.name, ...fields];
  };
  return { ...column, listTagFields, tagging: "added" };
}

/** Builders for each kind of column. */
export const column = {
  text,
  choice,
  bytes,
  flag,
  namedFlag,
  optionalFlag,
  integer,
  int32,
  time,
  jsonList,
  spacedList,
  textMap,
  optionalText,
  optionalChoice,
  optionalInteger,
  optionalUint32,
  optionalTime,
  unique,
  untagged,
  added,
};

/** Converts a record, or some of its values, to a row. */
export function toRow<C extends Columns>(columns: C, record: RecordOf<C>): RowOf<C>;
export function toRow<C extends Columns>(columns: C, values: Partial<RecordOf<C>>): AnyRow;
export function toRow(columns: Columns, record: Readonly<Record<string, unknown>>): AnyRow {
  const row: AnyRow = {};
  for (const [property, column] of Object.entries(columns))
    if (Object.hasOwn(record, property)) row[column.name] = column.toRow(record[property]);
  return row;
}

/**
 * Returns whether a row is stored exactly as its record would be. A different row may read as the same
 * record, whose tag is then valid: for example, unknown text reads as the first of several choices. Rows
 * older than a column have null there.
 */
export function isAsStored(columns: Columns, row: Readonly<AnyRow>): boolean {
  return Object.values(columns).every(({ name, fromRow: read, toRow: write }) => {
    const raw = row[name] ?? null;
    if (raw === null) return true;
    const stored = write(read(raw));
    return raw instanceof Uint8Array && stored instanceof Uint8Array
      ? Buffer.compare(raw, stored) === 0
      : raw === stored;
  });
}

export function fromRow<C extends Columns>(columns: C, row: Readonly<AnyRow>): RecordOf<C>;
export function fromRow(columns: Columns, row: Readonly<AnyRow>): Record<string, unknown> {
  const record: Record<string, unknown> = {};
  for (const [property, { name, fromRow: read }] of Object.entries(columns))
    record[property] = read(row[name] ?? null);
  return record;
}
