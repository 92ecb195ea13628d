/**
 * A table of records. Its declaration describes how records are stored, tagged, found, listed and counted.
 */
import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Reader } from "../database/database.ts";
import { countRows } from "../database/read-rows.ts";
import { type AnyRow, anyTable, type Schema } from "../database/schema.ts";
import { orderByBytes } from "../database/text-order.ts";
import { type Columns, fromRow, type RecordOf, toRow } from "./columns.ts";
import { readCount } from "./list-counts.ts";
import { isSeenBy, listSeenBy, type Principal, systemPrincipal } from "./ownership.ts";
import { cutPage, maxCounted, type Page, type PageRequest } from "./pages.ts";
import { nextPosition } from "./positions.ts";
import type { Quota } from "./quota.ts";
import { countRecords } from "./record-counts.ts";
import {
  defaultOrder,
  defaultTagColumn,
  type Filters,
  nameList,
  nameNarrowed,
  nameSecret,
  requireIntact,
  type Stored,
  type TableDeclaration,
} from "./table-declaration.ts";
import type { TagField } from "./tag.ts";
import { prepareTagFields } from "./tag-fields.ts";

/** A record with its row, for stores that keep additional columns in the row. */
export interface Found<T> extends Stored<T> {
  readonly row: Readonly<AnyRow>;
  /** Whether its tag is valid, but a log records its end. */
  readonly isRestored?: boolean;
}

/** What a table needs of the store. */
export interface RecordStore {
  readonly reader: Reader;
  tagRecord(fields: readonly TagField[]): string;
  isTagged(fields: readonly TagField[], tag: string): boolean;
}

/** What a table needs of a transaction. */
export interface RecordTransaction {
  readonly db: Kysely<Schema>;
  putSecret(identity: string, secret: Uint8Array): Promise<void>;
  eraseSecret(identity: string): Promise<void>;
  requireRoom(quota: Quota, owner: string, added?: number): Promise<void>;
}

/** Who is looking for a record, and in which database. */
export interface FindOptions {
  /** If omitted, the search sees all records. */
  readonly principal?: Principal;
  /** A transaction's database; default: the reader. */
  readonly db?: Kysely<Schema>;
}

/** A condition on list rows in addition to filters, and their order. */
export interface Narrowing {
  /** Identifies the condition and the order in page tokens. */
  readonly name: string;
  /** A column of unique texts that orders the list; if omitted, rows are ordered by age. */
  readonly orderedBy?: string;
  /** Whether the list starts with its last row. */
  readonly isReversed?: boolean;
  readonly where: RawBuilder<boolean>;
}

/** Selects a table's records for a list. */
export interface ListQuery<C extends Columns> {
  /** Whose records to list; if omitted, all owners'. */
  readonly principal?: Principal | undefined;
  readonly filters?: Filters<C>;
  readonly narrowing?: Narrowing | undefined;
}

export function openTable<C extends Columns>(store: RecordStore, declaration: TableDeclaration<C>) {
  const core = prepareTable(store, declaration);
  return {
    readRow: core.readRow,
    /** @throws RecordDamagedError */
    requireIntact: (found: Stored<RecordOf<C>>) => requireIntact(found, declaration.describe(found.record)),
    select: core.select,
    toTaggedRow: core.toTaggedRow,
    ...createFinds(core),
    ...createLists(core),
    ...createWrites(core),
  };
}

export type RecordTable<C extends Columns> = ReturnType<typeof openTable<C>>;

/** What all operations on a table share. */
type TableCore<C extends Columns> = ReturnType<typeof prepareTable<C>>;

function prepareTable<C extends Columns>(store: RecordStore, declaration: TableDeclaration<C>) {
  type T = RecordOf<C>;
  const { name, columns, owner, alsoSelect, hasEnded, tagColumn = defaultTagColumn } = declaration;
  const columnOf = (property: string): string => columns[property]?.name ?? property;
  const ownerOf = (record: T): string => (owner === undefined ? "" : String(record[owner]));

  const listTagFields = prepareTagFields(declaration);
  const readRow = (row: Readonly<AnyRow>): Found<T> => {
    const record = fromRow(columns, row);
    const isTagged = store.isTagged(listTagFields(record), String(row[tagColumn]));
    const isRestored = isTagged && hasEnded?.(row) === true;
    return { record, isIntact: isTagged && !isRestored, isRestored, row };
  };
  const toTaggedRow = (record: T): AnyRow => ({
    ...toRow(columns, record),
    [tagColumn]: store.tagRecord(listTagFields(record)),
  });
  const select = (db: Kysely<Schema>) => {
    const query = anyTable(db).selectFrom(name).selectAll(name);
    return alsoSelect === undefined ? query : query.select(alsoSelect);
  };
  return { store, declaration, columnOf, ownerOf, listTagFields, readRow, toTaggedRow, select };
}

/** The condition that columns have these values. Kysely's `and` would omit a value that is undefined. */
function hasValues(row: AnyRow): RawBuilder<boolean> {
  const conditions = Object.entries(row).map(([column, value]) => sql`${sql.ref(column)} = ${value}`);
  return sql<boolean>`${sql.join([sql`1 = 1`, ...conditions], sql` and `)}`;
}

function createFinds<C extends Columns>(core: TableCore<C>) {
  type T = RecordOf<C>;
  const { store, columnOf, ownerOf, readRow, select } = core;
  const { columns, describe, owner } = core.declaration;
  const isSeen = (principal: Principal | undefined, record: T): boolean =>
    principal === undefined || owner === undefined || isSeenBy(principal, { owner: ownerOf(record) });
  const findAny = async (
    wanted: Partial<T>,
    db: Kysely<Schema> = store.reader,
  ): Promise<Found<T> | undefined> => {
    const query = select(db).where(hasValues(toRow(columns, wanted)));
    const row = await query.executeTakeFirst();
    return row && readRow(row);
  };
  return {
    async find(wanted: Partial<T>, { principal, db }: FindOptions = {}): Promise<Found<T> | undefined> {
      const found = await findAny(wanted, db);
      return found && isSeen(principal, found.record) ? found : undefined;
    },
    /** @throws RecordDamagedError for a changed record, even if a different principal owns it */
    async findIntact(wanted: Partial<T>, { principal, db }: FindOptions = {}): Promise<T | undefined> {
      const found = await findAny(wanted, db);
      const record = found && requireIntact(found, describe(found.record));
      return record && isSeen(principal, record) ? record : undefined;
    },
    /** Finds the records with any of several values in a column. */
    async findSome(property: keyof C & string, values: readonly string[], db: Kysely<Schema> = store.reader) {
      const query = select(db).where(columnOf(property), "in", [...new Set(values)]);
      return (await query.execute()).map(readRow);
    },
  };
}

function createLists<C extends Columns>({ store, declaration, columnOf, readRow, select }: TableCore<C>) {
  type T = RecordOf<C>;
  const { name, owner, filters = [], sizeOfListed, orderedBy = defaultOrder } = declaration;
  /** The column values that all rows of a list have. */
  const listConditions = ({ principal = systemPrincipal, filters: wanted = {} }: ListQuery<C>): AnyRow => {
    const given = filters.flatMap((filter) => (wanted[filter] ? [[columnOf(filter), wanted[filter]]] : []));
    const isOwned = owner !== undefined && principal.owner !== undefined;
    return { ...(isOwned && { [columnOf(owner)]: principal.owner }), ...Object.fromEntries(given) };
  };
  /**
   * Where a page starts in a list ordered by text: after the text of the row at a position. Callers can forge
   * page tokens, so the row must be one that they can see: otherwise, the rows after it would reveal its
   * text.
   */
  const selectTextAt = (position: number, text: RawBuilder<string>, conditions: AnyRow) =>
    anyTable(store.reader)
      .selectFrom(name)
      .select(text.as("text"))
      .where(hasValues({ ...conditions, [orderedBy]: position }));
  const nameQuery = ({ principal = systemPrincipal, filters: wanted, narrowing }: ListQuery<C>): string =>
    nameNarrowed(listSeenBy(principal, nameList(declaration, wanted)), narrowing);
  return {
    /** Names a list in page tokens. */
    nameList: nameQuery,
    async list(request: PageRequest, query: ListQuery<C> = {}): Promise<Page<Found<T>>> {
      const { narrowing } = query;
      const conditions = listConditions(query);
      const { after } = request;
      const isReversed = narrowing?.isReversed === true;
      const text = narrowing?.orderedBy && orderByBytes(store.reader, narrowing.orderedBy);
      const compared = isReversed ? "<" : ">";
      let selected = select(store.reader).where(hasValues(conditions));
      if (after > 0)
        selected = text
          ? selected.where(text, compared, selectTextAt(after, text, conditions))
          : selected.where(orderedBy, compared, after);
      if (narrowing) selected = selected.where(narrowing.where);
      const rows = await selected
        .orderBy(text || orderedBy, isReversed ? "desc" : "asc")
        .limit(request.limit + 1)
        .execute();
      const positionOf = (row: Readonly<AnyRow>): number => Number(row[orderedBy]);
      const page = cutPage(rows, request, nameQuery(query), positionOf, sizeOfListed);
      return { ...page, rows: page.rows.map(readRow) };
    },
    /** Lists records that match a condition, for a service's own work. */
    async listWhere(
      where: RawBuilder<boolean>,
      order: RawBuilder<unknown>,
      limit: number,
    ): Promise<Found<T>[]> {
      const rows = await select(store.reader).where(where).orderBy(order).limit(limit).execute();
      return rows.map(readRow);
    },
    /**
     * Counts the records of a list. For a narrowed list, it counts rows up to maxCounted; other lists have a
     * stored count.
     */
    async count(query: ListQuery<C> = {}): Promise<number> {
      const { narrowing } = query;
      if (narrowing === undefined) return readCount(store.reader, nameQuery(query));
      const selected = anyTable(store.reader)
        .selectFrom(name)
        .select(sql<number>`1`.as("found"))
        .where(hasValues(listConditions(query)))
        .where(narrowing.where)
        .limit(maxCounted);
      return countRows(store.reader.selectFrom(sql`(${selected})`.as("counted")));
    },
  };
}

function createWrites<C extends Columns>(core: TableCore<C>) {
  type T = RecordOf<C>;
  const { store, declaration, ownerOf, listTagFields, toTaggedRow } = core;
  const { name, columns, key, quota, orderedBy = defaultOrder, tagColumn = defaultTagColumn } = declaration;
  const counts = countRecords(declaration);
  const keyOf = (record: T): AnyRow => {
    const values = key.map((property) => [property, record[property]]);
    return toRow(columns, Object.fromEntries(values) as Partial<T>);
  };
  return {
    /**
     * Inserts a record within a transaction.
     *
     * @param secret sealed with the record; the caller wipes it
     * @param more columns that are not part of the record
     * @throws QuotaExceededError
     */
    async insert(
      { db, requireRoom, putSecret }: RecordTransaction,
      record: T,
      secret?: Uint8Array,
      more: AnyRow = {},
    ): Promise<void> {
      if (quota) await requireRoom(quota, ownerOf(record));
      const position = orderedBy === "position" ? { position: await nextPosition(db, name) } : {};
      await anyTable(db)
        .insertInto(name)
        .values({ ...position, ...toTaggedRow(record), ...more })
        .execute();
      await counts.add(db, record);
      if (secret !== undefined) await putSecret(nameSecret(declaration, record), secret);
    },
    /** Changes a record within a transaction and returns it. A damaged record stays damaged. */
    async update({ db }: RecordTransaction, { record, isIntact }: Stored<T>, change: Partial<T>): Promise<T> {
      const changed = { ...record, ...change };
      const tag = isIntact ? { [tagColumn]: store.tagRecord(listTagFields(changed)) } : {};
      await anyTable(db)
        .updateTable(name)
        .set({ ...toRow(columns, change), ...tag })
        .where(hasValues(keyOf(record)))
        .execute();
      await (isIntact ? counts.move(db, record, changed) : counts.recount(db));
      return changed;
    },
    /** Removes a record and its secret within a transaction. */
    async remove({ db, eraseSecret }: RecordTransaction, { record, isIntact }: Stored<T>): Promise<void> {
      await anyTable(db)
        .deleteFrom(name)
        .where(hasValues(keyOf(record)))
        .execute();
      await eraseSecret(nameSecret(declaration, record));
      await (isIntact ? counts.remove(db, record) : counts.recount(db));
    },
  };
}
