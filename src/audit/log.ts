/** Reads a log's entries and its end. */
import { type Kysely, sql } from "kysely";
import type { Reader } from "../database/database.ts";
import type { Schema } from "../database/schema.ts";
import { fromRow } from "../records/columns.ts";
import { cutPage, maxCounted, type Page, type PageRequest } from "../records/pages.ts";
import { type AuditEntry, type AuditHead, emptyChain } from "./chain.ts";
import { applyFilter, type EntryFilter, listConditions } from "./entry-filter.ts";
import {
  type AuditEntriesTable,
  type AuditHeadTable,
  entryColumns,
  keyLog,
  type LogTables,
} from "./tables.ts";

/** The columns of an `AuditEntry`, without the tag. */
const { entryTag: _entryTag, ...contentColumns } = entryColumns;

/** Maximum entries to scan for the size of a filtered list, and maximum matches to count. */
const countLimits = { read: 100_000, counted: maxCounted };

/** Which entries to read, and how. */
export interface EntryReading {
  readonly filter: EntryFilter;
  /** Default: the key log. */
  readonly log?: LogTables;
  /** Default: the oldest entry is first. */
  readonly isNewestFirst?: boolean;
  /**
   * Returns whether an entry still has the owner and key name that it was written with: see
   * `Store.isEntryTagged`.
   */
  readonly isTagged?: ((entry: AuditEntry, tag: string) => boolean) | undefined;
}

/**
 * Reads one page of entries. The total size of a filtered list covers only its oldest entries, up to the
 * limits; the list has at least as many.
 */
export async function listEntries(
  db: Reader,
  request: PageRequest,
  reading: EntryReading,
  limits = countLimits,
): Promise<Page<AuditEntry> & { readonly totalSize: number }> {
  const { filter } = reading;
  const entries = await readEntries(db, { ...request, limit: request.limit + 1 }, reading);
  const { rows, ...page } = cutPage(entries, request, nameEntryList(reading), ({ sequence }) => sequence);
  return {
    ...page,
    rows: rows.filter(({ owner }) => filter.owner === undefined || owner === filter.owner),
    totalSize: await countEntries(db, reading, limits),
  };
}

/** Names a list of entries in page tokens. */
export function nameEntryList({ filter, log = keyLog, isNewestFirst = false }: EntryReading): string {
  const name = `${log === keyLog ? "audit" : log.entries} ${JSON.stringify(listConditions(filter))}`;
  return isNewestFirst ? `${name} newest first` : name;
}

/** Reads entries. If an entry's owner was changed, its owner and key name are omitted. */
export async function readEntries(
  db: Reader,
  { after, limit }: PageRequest,
  { filter, log = keyLog, isNewestFirst = false, isTagged }: EntryReading,
): Promise<AuditEntry[]> {
  const rows = await applyFilter(db.selectFrom(log.entries).selectAll(), filter)
    .where("sequence", ">", isNewestFirst ? 0 : after)
    .$if(isNewestFirst && after > 0, (rest) => rest.where("sequence", "<", after))
    .orderBy("sequence", isNewestFirst ? "desc" : "asc")
    .limit(limit)
    .execute();
  return rows.map((row) => {
    const entry = toEntry(row);
    const isOwned = isTagged === undefined || isTagged(entry, row.entry_tag);
    return isOwned ? entry : { ...entry, owner: "", keyName: "" };
  });
}

/** Reads entry rows, up to and including a sequence number. */
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

/** An index selects the entries of a key or owner; the other filters scan these. */
async function countEntries(
  db: Reader,
  { filter, log = keyLog }: EntryReading,
  { read, counted }: typeof countLimits,
): Promise<number> {
  if (listConditions(filter).length === 0) return (await readHead(db, log)).sequence;
  const { keyId, owner, keyName, ...others } = filter;
  const isRead = db.selectFrom(log.entries).selectAll();
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

/** Reads the stored end of the chain, without checking it. */
export async function readHead(db: Reader, tables: LogTables = keyLog): Promise<AuditHead> {
  return toHead(await selectHead(db, tables).executeTakeFirst());
}

export function toEntry(row: AuditEntriesTable): AuditEntry {
  return fromRow(contentColumns, row);
}

/** Selects the stored end of a log. */
export function selectHead(db: Kysely<Schema>, tables: LogTables) {
  return db.selectFrom(tables.head).selectAll().where("id", "=", 1);
}

export function toHead(row: AuditHeadTable | undefined): AuditHead {
  return row ? { sequence: row.sequence, entryHash: row.entry_hash } : emptyChain;
}
