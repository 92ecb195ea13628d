/** The audit log: entries in a hash chain, written in the same transaction as the events that they record. */
import { type Kysely, type SelectQueryBuilder, sql } from "kysely";
import type { Statement } from "../database/connection.ts";
import type { Reader } from "../database/database.ts";
import type { Schema } from "../database/schema.ts";
import { StoreFailureError } from "../database/store-error.ts";
import { fromRow, toRow } from "../records/columns.ts";
import { cutPage, maxCounted, type Page, type PageRequest } from "../records/pages.ts";
import { equalTags } from "../records/tag.ts";
import {
  type AuditEntry,
  type AuditHead,
  emptyChain,
  emptyContext,
  hashEntry,
  type NewAuditEntry,
  tagEntry,
  tagHead,
} from "./chain.ts";
import { createRecentHashes, type RecentHashes } from "./recent-hashes.ts";
import {
  type AuditEntriesTable,
  type AuditHeadTable,
  entryColumns,
  keyLog,
  type LogTables,
} from "./tables.ts";

/** Takes the entries of one transaction. */
export interface AuditAppender {
  append(entry: NewAuditEntry): void;
}

/** The entries of one transaction, until they are written at its end. */
export interface PendingEntries extends AuditAppender {
  list(): readonly NewAuditEntry[];
  /** Returns the statements that write the entries and the new end of the chain. */
  finish(): Statement[];
  /** Call this when the entries are on the disk. */
  committed(): void;
}

/** The most entries in one statement; each has 13 values, and SQLite accepts 32,766. */
const maxRowsPerStatement = 64;

/**
 * Reads and writes the chain of a database. It remembers the newest end that it saw, so that a running program detects
 * an older log that was put back.
 */
export interface AuditChain {
  /** Reads the end of the chain; runs first in each write transaction. */
  readonly readHead: Statement;
  /** @param rows the result of `readHead`. @throws StoreFailureError if the end was changed or an older log put back */
  start(rows: readonly unknown[], now: () => Date): PendingEntries;
  /** The newest end that this program saw. */
  newestSeen(): AuditHead;
  /** The hashes of the entries that this program wrote last. */
  readonly recent: Pick<RecentHashes, "list">;
  /** Reads the end, outside of a transaction. @throws StoreFailureError as `start` does */
  readTrueHead(db: Reader): Promise<AuditHead>;
}

/**
 * @param db builds queries; none is run on it.
 * @param tagKey RootKeys.audit
 */
export function createAuditChain(
  db: Kysely<Schema>,
  tagKey: Uint8Array,
  tables: LogTables = keyLog,
): AuditChain {
  const inserts = new Map<number, string>();
  /** Caches SQL by the number of rows, because building a query costs more than running it. */
  const insertOf = (rows: readonly AuditEntriesTable[]): Statement => {
    let sql = inserts.get(rows.length);
    if (sql === undefined) {
      sql = db
        .insertInto(tables.entries)
        .columns(columns)
        .values([...rows])
        .compile().sql;
      inserts.set(rows.length, sql);
    }
    return { sql, parameters: rows.flatMap((row) => columns.map((column) => row[column])) };
  };
  const headRow = { id: 1, sequence: 0, entry_hash: "", head_tag: "" };
  const insertHead = db.insertInto(tables.head).values(headRow).compile().sql;
  const { id: _, ...changing } = headRow;
  const updateHead = db.updateTable(tables.head).set(changing).where("id", "=", 1).compile().sql;
  let newest = emptyChain;
  const recent = createRecentHashes();

  /** @param known an end that was seen before the row was read */
  const trust = (row: AuditHeadTable | undefined, known: AuditHead): AuditHead => {
    const head = toHead(row);
    if (row && !equalTags(row.head_tag, tagHead(tagKey, head)))
      throw new StoreFailureError(
        "CORRUPT",
        new Error("the end of the audit chain was changed outside the server"),
      );
    const isOther = head.sequence === known.sequence && head.entryHash !== known.entryHash;
    if (head.sequence < known.sequence || isOther)
      throw new StoreFailureError("CORRUPT", new Error("an older audit chain replaced a newer one"));
    return head;
  };
  const see = (head: AuditHead): void => {
    if (head.sequence > newest.sequence) newest = head;
  };

  return {
    readHead: selectHead(db, tables).compile(),
    newestSeen: () => newest,
    recent,
    async readTrueHead(reader) {
      const known = newest;
      const head = trust(await selectHead(reader, tables).executeTakeFirst(), known);
      see(head);
      return head;
    },
    start(rows, now) {
      const [row] = rows as readonly AuditHeadTable[];
      let head = trust(row, newest);
      see(head);
      const given: NewAuditEntry[] = [];
      const entries: AuditEntriesTable[] = [];
      return {
        list: () => given,
        committed() {
          see(head);
          for (const { sequence, entry_hash } of entries) recent.add(sequence, entry_hash);
        },
        append(entry) {
          given.push(entry);
          const placed = { ...emptyContext, ...entry, sequence: head.sequence + 1, timestamp: now() };
          const entryHash = hashEntry(placed, head.entryHash, tables);
          head = { sequence: placed.sequence, entryHash };
          entries.push(toAuditRow({ ...placed, entryHash }, tagEntry(tagKey, { ...placed, entryHash })));
        },
        finish() {
          if (entries.length === 0) return [];
          const tag = tagHead(tagKey, head);
          const headValues = [head.sequence, head.entryHash, tag];
          return [
            ...chunk(entries, maxRowsPerStatement).map(insertOf),
            row === undefined
              ? { sql: insertHead, parameters: [1, ...headValues] }
              : { sql: updateHead, parameters: [...headValues, 1] },
          ];
        },
      };
    },
  };
}

/** The names of the columns of an entry, in the order in which they are written to the database. */
const columns = Object.values(entryColumns).map(({ name }) => name);

/** The columns without the tag: those of an `AuditEntry`. */
const { entryTag: _entryTag, ...contentColumns } = entryColumns;

/** Which entries to read; a filter that is left out matches all. */
export interface AuditFilter {
  readonly keyId?: string | undefined;
  readonly owner?: string | undefined;
  readonly keyName?: string | undefined;
  readonly operation?: string | undefined;
  readonly outcome?: string | undefined;
  readonly user?: string | undefined;
  /** Inclusive. */
  readonly from?: Date | undefined;
  /** Exclusive. */
  readonly to?: Date | undefined;
}

/** The most entries to look at for the size of a filtered list, and the most of them to count. */
const countLimits = { read: 100_000, counted: maxCounted };

/** How to read entries for a caller. */
export interface EntryReading {
  /** Tells whether an entry has the owner and the key name that it was written with: see `Store.isEntryTagged`. */
  readonly isTagged?: ((entry: AuditEntry, tag: string) => boolean) | undefined;
  /** For tests. */
  readonly limits?: typeof countLimits | undefined;
}

/**
 * Reads one page of entries, oldest first. The total size of a filtered list is that among its oldest entries, at most
 * as many as the limits say; there are at least as many.
 */
export async function listAuditEntries(
  db: Reader,
  request: PageRequest,
  filter: AuditFilter,
  tables: LogTables = keyLog,
  { isTagged, limits = countLimits }: EntryReading = {},
): Promise<Page<AuditEntry> & { readonly totalSize: number }> {
  const entries = await readEntries(db, request.after, request.limit + 1, filter, tables, isTagged);
  const { rows, nextPageToken } = cutPage(
    entries,
    request,
    auditListName(filter, tables),
    ({ sequence }) => sequence,
  );
  return {
    rows: rows.filter(({ owner }) => filter.owner === undefined || owner === filter.owner),
    nextPageToken,
    totalSize: await countEntries(db, filter, tables, limits),
  };
}

/** Names a list of entries, for page tokens. */
export function auditListName(filter: AuditFilter, tables: LogTables = keyLog): string {
  return `${tables === keyLog ? "audit" : tables.entries} ${JSON.stringify(listConditions(filter))}`;
}

/** Reads entries after a sequence number, oldest first. One whose owner was changed comes without owner and key name. */
export async function readEntries(
  db: Reader,
  after: number,
  limit: number,
  filter: AuditFilter,
  tables: LogTables = keyLog,
  isTagged?: EntryReading["isTagged"],
): Promise<AuditEntry[]> {
  const query = db.selectFrom(tables.entries).selectAll().where("sequence", ">", after);
  const rows = await applyFilter(query, filter).orderBy("sequence").limit(limit).execute();
  return rows.map((row) => {
    const entry = toEntry(row);
    const isOwned = isTagged === undefined || isTagged(entry, row.entry_tag);
    return isOwned ? entry : { ...entry, owner: "", keyName: "" };
  });
}

/** Tells whether an entry passes a filter. */
export function matchesFilter(entry: AuditEntry, filter: AuditFilter): boolean {
  const row = toAuditRow(entry, "");
  return listConditions(filter).every(([column, operator, value]) => {
    if (operator === "=") return row[column] === value;
    return operator === ">=" ? row[column] >= value : row[column] < value;
  });
}

type Condition = readonly [keyof AuditEntriesTable, "=" | ">=" | "<", string | number];

/** The filters by one value. Their order is part of page tokens. */
const equalFilters = ["keyId", "owner", "keyName", "operation", "outcome", "user"] as const;

function listConditions(filter: AuditFilter): Condition[] {
  const { timestamp } = entryColumns;
  const { from, to } = filter;
  const conditions = equalFilters.flatMap((property): Condition[] => {
    const value = filter[property];
    return value === undefined ? [] : [[entryColumns[property].name, "=", value]];
  });
  if (from !== undefined) conditions.push([timestamp.name, ">=", from.getTime()]);
  if (to !== undefined) conditions.push([timestamp.name, "<", to.getTime()]);
  return conditions;
}

function applyFilter<Output>(
  query: SelectQueryBuilder<Schema, LogTables["entries"], Output>,
  filter: AuditFilter,
): SelectQueryBuilder<Schema, LogTables["entries"], Output> {
  return listConditions(filter).reduce(
    (filtered, [column, operator, value]) => filtered.where(column, operator, value),
    query,
  );
}

/** Reads the rows of entries, up to and including a sequence number. */
export function readEntryRows(
  db: Reader,
  after: number,
  limit: number,
  last: number,
  tables: LogTables = keyLog,
): Promise<AuditEntriesTable[]> {
  return db
    .selectFrom(tables.entries)
    .selectAll()
    .where("sequence", ">", after)
    .where("sequence", "<=", last)
    .orderBy("sequence")
    .limit(limit)
    .execute();
}

/** An index selects the entries of a key or of an owner; the other filters look at each of these. */
async function countEntries(
  db: Reader,
  filter: AuditFilter,
  tables: LogTables,
  { read, counted }: typeof countLimits,
): Promise<number> {
  if (listConditions(filter).length === 0) return (await readHead(db, tables)).sequence;
  const { keyId, owner, keyName, ...others } = filter;
  const isRead = db.selectFrom(tables.entries).selectAll();
  const oldest = applyFilter(isRead, { keyId, owner, keyName }).orderBy("sequence").limit(read);
  const conditions = listConditions(others).map(
    ([column, operator, value]) => sql<boolean>`${sql.ref(column)} ${sql.raw(operator)} ${value}`,
  );
  const where = sql.join([sql`1 = 1`, ...conditions], sql` and `);
  const { rows } = await sql<{
    count: number;
  }>`select count(*) as count from (select 1 from (${oldest}) as oldest where ${where} limit ${counted}) as counted`.execute(
    db,
  );
  return Number(rows[0]?.count ?? 0);
}

/** Reads the stated end of the chain, without checking it. */
export async function readHead(db: Reader, tables: LogTables = keyLog): Promise<AuditHead> {
  return toHead(await selectHead(db, tables).executeTakeFirst());
}

/** Selects the stated end of a log. */
export function selectHead(db: Kysely<Schema>, tables: LogTables) {
  return db.selectFrom(tables.head).selectAll().where("id", "=", 1);
}

function toHead(row: AuditHeadTable | undefined): AuditHead {
  return row ? { sequence: row.sequence, entryHash: row.entry_hash } : emptyChain;
}

/** Converts a row to an entry. */
export function toEntry(row: AuditEntriesTable): AuditEntry {
  return fromRow(contentColumns, row);
}

function toAuditRow(entry: AuditEntry, entryTag: string): AuditEntriesTable {
  return toRow(entryColumns, { ...entry, entryTag });
}

function chunk<T>(values: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, i) =>
    values.slice(i * size, (i + 1) * size),
  );
}
