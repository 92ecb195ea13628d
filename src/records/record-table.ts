/** A table of records: one declaration of its columns says how records are kept, tagged, found, listed and counted. */
import type { AliasedRawBuilder, Kysely } from "kysely";
import type { Reader } from "../database/database.ts";
import type { Schema } from "../database/schema.ts";
import { RecordDamagedError } from "../database/store-error.ts";
import { type AnyRow, type Columns, type ColumnValue, fromRow, type RecordOf, toRow } from "./columns.ts";
import { changeCounts, readCount, resetCounts } from "./list-counts.ts";
import { countedLists, listSeenBy, type Principal, systemPrincipal } from "./ownership.ts";
import { cutPage, type Page, type PageRequest } from "./pages.ts";
import { nextPosition } from "./positions.ts";
import type { Quota } from "./quota.ts";
import type { TagField } from "./tag.ts";

/** A record as it was read. */
export interface Stored<T> {
  readonly record: T;
  /** False if somebody changed it behind our back. */
  readonly isIntact: boolean;
}

/** A record with its row, for a store that keeps more in it than the record. */
export interface Found<T> extends Stored<T> {
  readonly row: Readonly<AnyRow>;
}

/** Gives a record that nobody changed. @throws RecordDamagedError naming it */
export function requireIntact<T>(stored: Stored<T>, name: string): T {
  if (stored.isIntact) return stored.record;
  throw new RecordDamagedError(name);
}

/** What a table declares. */
export interface TableDeclaration<C extends Columns> {
  readonly name: string;
  readonly columns: C;
  /** The values that tell a record from others. */
  readonly key: readonly (keyof C & string)[];
  /** Names a record for a person, such as "user ada". */
  readonly describe: (record: RecordOf<C>) => string;
  /** Whose the record is; a table without an owner has no counts. */
  readonly owner?: keyof C & string;
  /** The values that lists can be filtered by, in the order of their names. */
  readonly filters?: readonly (keyof C & string)[];
  readonly quota?: Quota;
  /** The column that orders lists; "position" if left out, which `insert` then counts on. */
  readonly orderedBy?: string;
  /** The approximate size of a listed row in JSON; that of all its columns if left out. */
  readonly sizeOfListed?: (row: Readonly<AnyRow>) => number;
  /** The first field of a tag; the name of the table if left out. */
  readonly tagKind?: string;
  /** "record_tag" if left out. */
  readonly tagColumn?: string;
  /** The last columns of the tag, which it does not have while all of them are empty. */
  readonly omittedAtEnd?: readonly (keyof C & string)[];
  /** What to select beside the columns. */
  readonly alsoSelect?: AliasedRawBuilder<ColumnValue, string>;
}

/** Values of filters; an empty one stands for all. */
export type Filters<C extends Columns> = { readonly [P in keyof C]?: string };

/** What a table needs of the store. */
export interface RecordStore {
  readonly reader: Reader;
  tagRecord(fields: readonly TagField[]): string;
  isTagged(fields: readonly TagField[], tag: string): boolean;
}

/** What a table needs of a transaction. */
export interface RecordTransaction {
  readonly db: Kysely<Schema>;
  requireRoom(quota: Quota, owner: string, added?: number): Promise<void>;
}

/** The records of a table. */
export interface RecordTable<C extends Columns> {
  /** @param db of a transaction; else the reader */
  find(key: Partial<RecordOf<C>>, db?: Kysely<Schema>): Promise<Found<RecordOf<C>> | undefined>;
  /** @throws RecordDamagedError */
  findIntact(key: Partial<RecordOf<C>>, db?: Kysely<Schema>): Promise<RecordOf<C> | undefined>;
  /** Finds the records of several values of a column. */
  findSome(
    property: keyof C & string,
    values: readonly string[],
    db?: Kysely<Schema>,
  ): Promise<Found<RecordOf<C>>[]>;
  list(request: PageRequest, filters?: Filters<C>, principal?: Principal): Promise<Page<Found<RecordOf<C>>>>;
  count(filters?: Filters<C>, principal?: Principal): Promise<number>;
  /** @param more columns that are none of the record's */
  insert(transaction: RecordTransaction, record: RecordOf<C>, more?: AnyRow): Promise<void>;
  /** Changes a record and gives it back; one that somebody changed stays marked as changed. */
  update(
    transaction: RecordTransaction,
    stored: Stored<RecordOf<C>>,
    change: Partial<RecordOf<C>>,
  ): Promise<RecordOf<C>>;
  remove(transaction: RecordTransaction, stored: Stored<RecordOf<C>>): Promise<void>;
  readRow(row: Readonly<AnyRow>): Found<RecordOf<C>>;
  /** Makes a row with its tag. */
  toRow(record: RecordOf<C>): AnyRow;
}

/** Names a list with its filters, for page tokens and counts. */
export function nameList(table: string, filters: Readonly<Record<string, string>> = {}): string {
  const parts = Object.entries(filters).filter(([, value]) => value !== "");
  return [table, ...parts.map(([name, value]) => `${name}=${value}`)].join(" ");
}

/**
 * Tables by names that are known at run time only. Kysely knows the type of a table by its literal name, which a
 * function for all tables does not have; the columns of the declaration are those of the schema, which is made of them.
 */
type AnySchema = Record<string, AnyRow>;
const anyTable = (db: Kysely<Schema>): Kysely<AnySchema> => db as unknown as Kysely<AnySchema>;

/** Opens a table of a store. */
export function openTable<C extends Columns>(
  store: RecordStore,
  declaration: TableDeclaration<C>,
): RecordTable<C> {
  const { name, columns, key, describe, owner, filters = [], quota, orderedBy = "position" } = declaration;
  const {
    tagKind = name,
    tagColumn = "record_tag",
    omittedAtEnd = [],
    sizeOfListed,
    alsoSelect,
  } = declaration;
  const columnOf = (property: string): string => columns[property]?.column ?? property;

  const listFieldsOf = (record: RecordOf<C>, properties: readonly string[]): TagField[] =>
    properties.flatMap((property) => [...(columns[property]?.listTagFields(record[property]) ?? [])]);
  const listTagFields = (record: RecordOf<C>): TagField[] => {
    const fields = [tagKind, ...listFieldsOf(record, Object.keys(columns))];
    const end = listFieldsOf(record, omittedAtEnd);
    return end.every((field) => field === "") ? fields.slice(0, fields.length - end.length) : fields;
  };
  const readRow = (row: Readonly<AnyRow>): Found<RecordOf<C>> => {
    const record = fromRow(columns, row);
    return { record, isIntact: store.isTagged(listTagFields(record), String(row[tagColumn])), row };
  };
  const select = (db: Kysely<Schema>) => {
    const query = anyTable(db).selectFrom(name).selectAll(name);
    return alsoSelect === undefined ? query : query.select(alsoSelect);
  };
  /** The lists of a record: for each filter all or its value, each for everybody and for the owner. */
  const listsOf = (read: (property: string) => unknown): string[] => {
    if (owner === undefined) return [];
    const choices = filters.reduce<Record<string, string>[]>(
      (lists, filter) => lists.flatMap((list) => [list, { ...list, [filter]: String(read(filter)) }]),
      [{}],
    );
    const lists = choices.map((list) => nameList(name, list));
    return countedLists(lists, { owner: String(read(owner)) });
  };
  const count = async (db: Kysely<Schema>, lists: readonly string[], change: number): Promise<void> => {
    if (lists.length > 0) await changeCounts(db, lists, change);
  };
  /** Counts all records anew: in which lists a changed one was before it was changed, nobody knows. */
  const recount = async (db: Kysely<Schema>): Promise<void> => {
    if (owner === undefined) return;
    const grouped = [...filters, owner].map(columnOf);
    const groups = await anyTable(db)
      .selectFrom(name)
      .select(grouped)
      .select((row) => row.fn.countAll<number>().as("row_count"))
      .groupBy(grouped)
      .execute();
    const counts = new Map<string, number>();
    for (const group of groups)
      for (const list of listsOf((property) => group[columnOf(property)]))
        counts.set(list, (counts.get(list) ?? 0) + Number(group.row_count));
    await resetCounts(db, name, counts);
  };
  const whereKey = (record: Partial<RecordOf<C>>): [string, ColumnValue][] => {
    const row: AnyRow = toRow(columns, record);
    return key.map((property) => [columnOf(property), row[columnOf(property)] ?? null]);
  };

  const table: RecordTable<C> = {
    readRow,
    toRow: (record) => ({
      ...toRow(columns, record),
      [tagColumn]: store.tagRecord(listTagFields(record)),
    }),
    async find(wanted, db = store.reader) {
      let query = select(db);
      for (const [column, value] of Object.entries(toRow(columns, wanted)))
        query = query.where(column, "=", value);
      const row = await query.executeTakeFirst();
      return row && readRow(row);
    },
    async findIntact(wanted, db) {
      const found = await table.find(wanted, db);
      return found && requireIntact(found, describe(found.record));
    },
    async findSome(property, values, db = store.reader) {
      const query = select(db).where(columnOf(property), "in", [...new Set(values)]);
      return (await query.execute()).map(readRow);
    },
    async list(request, wanted = {}, principal = systemPrincipal) {
      let query = select(store.reader).where(orderedBy, ">", request.after);
      if (owner !== undefined && principal.owner !== undefined)
        query = query.where(columnOf(owner), "=", principal.owner);
      for (const [property, value = ""] of Object.entries(wanted))
        if (value !== "") query = query.where(columnOf(property), "=", value);
      const rows = await query
        .orderBy(orderedBy)
        .limit(request.limit + 1)
        .execute();
      const list = listSeenBy(principal, nameList(name, wanted as Record<string, string>));
      const page = cutPage(rows, request, list, (row) => Number(row[orderedBy]), sizeOfListed);
      return { ...page, rows: page.rows.map(readRow) };
    },
    count: (wanted = {}, principal = systemPrincipal) =>
      readCount(store.reader, listSeenBy(principal, nameList(name, wanted as Record<string, string>))),
    async insert({ db, requireRoom }, record, more = {}) {
      if (quota && owner) await requireRoom(quota, String(record[owner]));
      const position = orderedBy === "position" ? { position: await nextPosition(db, name) } : {};
      await anyTable(db)
        .insertInto(name)
        .values({ ...position, ...table.toRow(record), ...more })
        .execute();
      await count(
        db,
        listsOf((property) => record[property]),
        1,
      );
    },
    async update({ db }, { record, isIntact }, change) {
      const changed = { ...record, ...change };
      const tag = isIntact ? { [tagColumn]: store.tagRecord(listTagFields(changed)) } : {};
      let query = anyTable(db)
        .updateTable(name)
        .set({ ...toRow(columns, change), ...tag });
      for (const [column, value] of whereKey(record)) query = query.where(column, "=", value);
      await query.execute();
      if (!isIntact) await recount(db);
      else {
        const [before, after] = [
          new Set(listsOf((property) => record[property])),
          new Set(listsOf((property) => changed[property])),
        ];
        await count(db, [...before.difference(after)], -1);
        await count(db, [...after.difference(before)], 1);
      }
      return changed;
    },
    async remove({ db }, { record, isIntact }) {
      let query = anyTable(db).deleteFrom(name);
      for (const [column, value] of whereKey(record)) query = query.where(column, "=", value);
      await query.execute();
      if (isIntact)
        await count(
          db,
          listsOf((property) => record[property]),
          -1,
        );
      else await recount(db);
    },
  };
  return table;
}
