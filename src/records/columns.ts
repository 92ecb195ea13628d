/**
 * Table columns: how a row stores a value, and what the value contributes to the record's tag. The statements
 * that create a table (create-table.ts) and its row types are derived from them.
 */
import { readInt32, readTime, readUint32 } from "../database/row-values.ts";
import type { AnyRow, ColumnValue } from "../database/schema.ts";
import type { TagField } from "./tag.ts";

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

export type TaggedRow<C extends Columns> = RowOf<C> & { record_tag: string };

/** A tagged row in a list. Positions start at 1 and follow insertion order. */
export type ListedRow<C extends Columns> = TaggedRow<C> & { position: number };

/** How a kind of column stores its values. */
type Storage<Value, Raw extends ColumnValue> = Pick<
  Column<string, Value, Raw>,
  "type" | "isNullable" | "toRow" | "fromRow"
>;

/** Creates a builder of columns whose tag field is the stored value, or empty if a value may be missing and is. */
function build<Value, Raw extends ColumnValue>(storage: Storage<Value, Raw>) {
  const missing = storage.isNullable ? "" : null;
  return <Name extends string>(name: Name): Column<Name, Value, Raw> => ({
    ...storage,
    name,
    listTagFields: (value) => [(storage.toRow(value) ?? missing) as TagField],
  });
}

/** Stores a value that may be missing. */
function optional<Value, Raw extends ColumnValue>(
  storage: Storage<Value, Raw>,
): Storage<Value | undefined, Raw | null> {
  return {
    type: storage.type,
    isNullable: true,
    toRow: (value) => (value === undefined ? null : storage.toRow(value)),
    fromRow: (raw) => (raw === null ? undefined : storage.fromRow(raw)),
  };
}

/** Stores values unchanged. */
function unchanged<Value extends ColumnValue>(type: ColumnType): Storage<Value, Value> {
  return { type, toRow: (value) => value, fromRow: (raw) => raw };
}

const texts = unchanged<string>("text");
const integers = unchanged<number>("integer");
/** Milliseconds since 1970, UTC. */
const times: Storage<Date, number> = {
  type: "integer",
  toRow: (value) => value.getTime(),
  fromRow: readTime,
};

/** Text, or a union of strings; the tag ensures that the value is one of them. */
function text<Name extends string, Value extends string = string>(name: Name): Column<Name, Value, string> {
  return build(texts as Storage<Value, string>)(name);
}

/** One of several strings; any other string is read as the first. */
function choice<Name extends string, const Value extends string>(
  name: Name,
  values: readonly [Value, ...Value[]],
): Column<Name, Value, string> {
  const read = (raw: string): Value => values.find((value) => value === raw) ?? values[0];
  return { ...text<Name, Value>(name), fromRow: read };
}

/** Stored as 1 or 0. */
const flag = build<boolean, number>({
  type: "integer",
  toRow: (value) => (value ? 1 : 0),
  fromRow: (raw) => raw === 1,
});

/** A flag that adds its name to the tag if it is set, and otherwise nothing. */
function namedFlag<Name extends string>(name: Name, tagged: string): Column<Name, boolean, number> {
  return { ...flag(name), listTagFields: (value) => (value ? [tagged] : []) };
}

/** A flag that is rarely set; its tag field is empty unless it is. */
const optionalFlag = build<boolean, number | null>({
  type: "integer",
  isNullable: true,
  toRow: (value) => (value ? 1 : null),
  fromRow: (raw) => raw === 1,
});

const optionalText = build(optional(texts));

/** One of several strings, or undefined; any other string is read as undefined. */
function optionalChoice<Name extends string, const Value extends string>(
  name: Name,
  values: readonly Value[],
): Column<Name, Value | undefined, string | null> {
  const read = (raw: string | null): Value | undefined => values.find((value) => value === raw);
  return { ...optionalText(name), fromRow: read };
}

/** Strings as a JSON array. */
const jsonList = build<readonly string[], string>({
  type: "text",
  toRow: (value) => JSON.stringify(value),
  fromRow(json) {
    const parsed = parseJson(json);
    return Array.isArray(parsed) ? parsed.map(String) : [];
  },
});

/** Strings without spaces, separated by spaces. */
const spacedList = build<readonly string[], string>({
  type: "text",
  toRow: (value) => value.join(" "),
  fromRow: (raw: string | null) => (raw ? raw.split(" ") : []),
});

export type TextMap = Readonly<Record<string, string>>;

/** Strings by name, as a JSON object in name order; empty text if there are none. */
const textMap = build<TextMap, string>({
  type: "text",
  toRow(value) {
    const pairs = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return pairs.length === 0 ? "" : JSON.stringify(Object.fromEntries(pairs));
  },
  fromRow(json) {
    const pairs = Object.entries(parseJson(json) ?? {});
    return Object.fromEntries(pairs.map(([name, value]) => [name, String(value)]));
  },
});

/** @returns undefined for text that the server did not write */
function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
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
  bytes: build(unchanged<Uint8Array>("bytes")),
  flag,
  namedFlag,
  optionalFlag,
  integer: build(integers),
  /** A non-negative number that fits an int32 field. */
  int32: build({ ...integers, fromRow: readInt32 }),
  time: build(times),
  jsonList,
  spacedList,
  textMap,
  optionalText,
  optionalChoice,
  optionalInteger: build(optional(integers)),
  optionalUint32: build(optional({ ...integers, fromRow: readUint32 })),
  optionalTime: build(optional(times)),
  unique,
  untagged,
  added,
};

/** The columns of each table with their properties, because listing them again for each row is costly. */
const listed = new WeakMap<Columns, readonly [property: string, Columns[string]][]>();

function listColumns(columns: Columns): readonly [property: string, Columns[string]][] {
  return listed.getOrInsertComputed(columns, Object.entries);
}

/** Converts a record, or some of its values, to a row. */
export function toRow<C extends Columns>(columns: C, record: RecordOf<C>): RowOf<C>;
export function toRow<C extends Columns>(columns: C, values: Partial<RecordOf<C>>): AnyRow;
export function toRow(columns: Columns, record: Readonly<Record<string, unknown>>): AnyRow {
  const row: AnyRow = {};
  for (const [property, column] of listColumns(columns))
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
  for (const [property, { name, fromRow: read }] of listColumns(columns))
    record[property] = read(row[name] ?? null);
  return record;
}
