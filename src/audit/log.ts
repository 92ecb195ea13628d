/** Reads a log's entries and its end. */
import { type Kysely, type SelectQueryBuilder, sql } from "kysely";
import type { Reader } from "../database/database.ts";
import type { Schema } from "../database/schema.ts";
import { fromRow } from "../records/columns.ts";
import { cutPage, maxCounted, type Page, type PageRequest, writeToken } from "../records/pages.ts";
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

/** Limits of one read, because other reads wait for it, and of one page. */
const scanLimits = {
  /** Maximum entries to scan at a time. A filter that no index serves could otherwise scan a whole log. */
  read: 100_000,
  /** Maximum matches to count. */
  counted: maxCounted,
  /** Maximum scans for a page. */
  scans: 10,
};

/** An entry that was read from the store. */
export interface StoredEntry extends AuditEntry {
  /** Whether the entry, or the hash before it, was changed outside the server. */
  readonly damaged?: boolean;
}

/** Which entries to read, and how. */
export interface EntryReading {
  readonly filter: EntryFilter;
  /** Default: the key log. */
  readonly log?: LogTables;
  /** Default: the oldest entry is first. */
  readonly isNewestFirst?: boolean;
  /** Returns whether the server wrote an entry: see `Store.isTrueEntry`. Default: entries are not checked. */
  readonly isTrue?: ((row: AuditEntriesTable, previousHash: string) => boolean) | undefined;
}

/**
 * Reads one page of entries. If few of many entries match, a page may have fewer rows than requested, even
 * none, and still be followed by others. The total size of a filtered list covers only its oldest entries, up
 * to the limits; the list has at least as many.
 */
export async function listEntries(
  db: Reader,
  request: PageRequest,
  reading: EntryReading,
  limits: Readonly<typeof scanLimits> = scanLimits,
): Promise<Page<StoredEntry> & { readonly totalSize: number }> {
  const { owner } = reading.filter;
  const list = nameEntryList(reading);
  const entries: StoredEntry[] = [];
  let { after } = request;
  let scannedUntil: number | undefined;
  for (let scans = 0; scans < limits.scans && entries.length <= request.limit; scans++) {
    scannedUntil = await findScanEnd(db, after, reading, limits.read);
    const limit = request.limit + 1 - entries.length;
    entries.push(...(await readEntries(db, { after, limit }, reading, scannedUntil)));
    if (scannedUntil === undefined) break;
    after = scannedUntil;
  }
  const { rows, nextPageToken } = cutPage(entries, request, list, ({ sequence }) => sequence);
  return {
    rows: rows.filter((entry) => owner === undefined || entry.owner === owner),
    nextPageToken:
      nextPageToken !== "" || scannedUntil === undefined ? nextPageToken : writeToken(scannedUntil, list),
    totalSize: await countEntries(db, reading, limits),
  };
}

/** Finds the entry that ends a scan; undefined if the scan may run to the end of the list. */
async function findScanEnd(
  db: Reader,
  after: number,
  { filter, log = keyLog, isNewestFirst = false }: EntryReading,
  maxScanned: number,
): Promise<number | undefined> {
  const { indexed, others } = splitFilter(filter);
  // Without other conditions, every scanned entry matches.
  if (listConditions(others).length === 0) return undefined;
  const entries = applyFilter(db.selectFrom(log.entries).select("sequence"), indexed);
  const end = await inOrder(entries, after, isNewestFirst)
    .offset(maxScanned - 1)
    .limit(1)
    .executeTakeFirst();
  return end?.sequence;
}

/** Separates the conditions that an index serves from those that the entries are scanned for. */
function splitFilter({ keyId, owner, keyName, ...others }: EntryFilter) {
  return { indexed: { keyId, owner, keyName }, others };
}

/** Orders entries, from those after a position on. */
function inOrder<Output>(
  query: SelectQueryBuilder<Schema, LogTables["entries"], Output>,
  after: number,
  isNewestFirst: boolean,
) {
  return query
    .where("sequence", ">", isNewestFirst ? 0 : after)
    .$if(isNewestFirst && after > 0, (rest) => rest.where("sequence", "<", after))
    .orderBy("sequence", isNewestFirst ? "desc" : "asc");
}

/** Names a list of entries in page tokens. */
export function nameEntryList({ filter, log = keyLog, isNewestFirst = false }: EntryReading): string {
  const name = `${log === keyLog ? "audit" : log.entries} ${JSON.stringify(listConditions(filter))}`;
  return isNewestFirst ? `${name} newest first` : name;
}

/**
 * Reads entries. The owner and key name of a damaged entry are omitted, so that only auditors see it.
 *
 * @param until the last entry to scan; default: the end of the log
 */
export async function readEntries(
  db: Reader,
  { after, limit }: PageRequest,
  { filter, log = keyLog, isNewestFirst = false, isTrue }: EntryReading,
  until?: number,
): Promise<StoredEntry[]> {
  const entries = applyFilter(db.selectFrom(log.entries).selectAll(), filter);
  const rows = await inOrder(entries, after, isNewestFirst)
    .$if(until !== undefined, (rest) => rest.where("sequence", isNewestFirst ? ">=" : "<=", until ?? 0))
    .limit(limit)
    .execute();
  if (isTrue === undefined) return rows.map(toEntry);
  const hashes = await readHashesBefore(db, rows, log);
  return rows.map((row) => {
    const entry = toEntry(row);
    const isIntact = isTrue(row, hashes.get(row.sequence - 1) ?? "");
    return isIntact ? entry : { ...entry, owner: "", keyName: "", damaged: true };
  });
}

/** Reads the hashes of the entries before the given ones, by sequence number. */
async function readHashesBefore(
  db: Reader,
  rows: readonly AuditEntriesTable[],
  log: LogTables,
): Promise<ReadonlyMap<number, string>> {
  const hashes = new Map([[0, emptyChain.entryHash]]);
  for (const { sequence, entry_hash } of rows) hashes.set(sequence, entry_hash);
  const missing = rows.map(({ sequence }) => sequence - 1).filter((sequence) => !hashes.has(sequence));
  if (missing.length === 0) return hashes;
  const found = await db
    .selectFrom(log.entries)
    .select(["sequence", "entry_hash"])
    .where("sequence", "in", missing)
    .execute();
  for (const { sequence, entry_hash } of found) hashes.set(sequence, entry_hash);
  return hashes;
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

async function countEntries(
  db: Reader,
  { filter, log = keyLog }: EntryReading,
  { read, counted }: Pick<typeof scanLimits, "read" | "counted">,
): Promise<number> {
  if (listConditions(filter).length === 0) return (await readHead(db, log)).sequence;
  const { indexed, others } = splitFilter(filter);
  const isRead = db.selectFrom(log.entries).selectAll();
  const oldest = applyFilter(isRead, indexed).orderBy("sequence").limit(read);
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
