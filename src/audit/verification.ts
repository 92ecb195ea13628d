/** Verifies the audit chain from its first entry to its end, and against its checkpoints. */
import { setImmediate } from "node:timers/promises";
import { type RawBuilder, sql } from "kysely";
import type { Reader } from "../database/database.ts";
import { readTime } from "../database/row-values.ts";
import { listAuditedTables, type TableOwner } from "../database/schema.ts";
import { StorageError } from "../database/store-error.ts";
import { equalTags } from "../records/tag.ts";
import { type AuditCheckpoint, type AuditHead, emptyChain, hashEntry, tagEntry, tagHead } from "./chain.ts";
import { readEntryRows, toEntry } from "./log.ts";
import type { AuditCheckpointsTable, AuditEntriesTable } from "./tables.ts";

/** A checkpoint with its signature. */
export interface SignedCheckpoint extends AuditCheckpoint {
  /** ML-DSA-65 over checkpointMessage. */
  readonly signature: Uint8Array;
}

/** What verification found. */
export interface AuditVerification {
  readonly valid: boolean;
  /** Entries that the log holds. */
  readonly entries: number;
  /** Hash of the last of them; 64 zeros if there is none. */
  readonly head: string;
  /** The first entry that is not as it was written, or is missing; undefined if the log is valid. */
  readonly firstBrokenSequence: number | undefined;
  /** What is wrong with it, for a person; empty if the log is valid. */
  readonly reason: string;
  /** The newest checkpoint that agrees with the log. */
  readonly checkpoint: SignedCheckpoint | undefined;
}

/** What verification needs. */
export interface AuditVerificationDeps {
  readonly db: Reader;
  /** Some of their tables have an entry for every row. */
  readonly owners: readonly TableOwner[];
  /** RootKeys.audit */
  readonly tagKey: Uint8Array;
  readonly verifyCheckpoint: (checkpoint: SignedCheckpoint) => Promise<boolean>;
  /** An end of the log that this program saw itself; the log must still go through it. */
  readonly seen: AuditHead;
  /** A checkpoint that was kept outside of the store; the log must still agree with it. */
  readonly outside?: SignedCheckpoint | undefined;
  /** Called now and then with the entries that were checked, and all that there are. */
  readonly onProgress?: (checked: number, total: number) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Entries to read at once. */
const chunkRows = 1000;

/** Something that is wrong with the log, and where. */
interface Fault {
  readonly sequence: number;
  readonly reason: string;
}

/**
 * Verifies the log as it is when this begins; what is written meanwhile is left for the next time.
 *
 * @throws StorageError if the checkpoint from outside is none of this store: it says nothing of the log
 */
export async function verifyAuditLog(deps: AuditVerificationDeps): Promise<AuditVerification> {
  if (deps.outside && !(await deps.verifyCheckpoint(deps.outside)))
    throw new StorageError(
      "the checkpoint that is to be held against it was not signed by this store, or changed",
    );
  const ends = await readEnds(deps);
  // Numbers that are not safe are none of ours; that such a row is there is found by its being outside of the walk.
  const end = Math.min(Math.max(ends.stated.sequence, ends.lastRow), Number.MAX_SAFE_INTEGER);
  const walk = await walkChain(deps, end, await readCheckpoints(deps, end));
  const fault = walk.fault ?? findFaultOfEnds(walk, ends) ?? findPutBack(walk, deps.seen);
  return {
    valid: fault === undefined,
    entries: walk.entries,
    head: walk.last.entryHash,
    firstBrokenSequence: fault?.sequence,
    reason: fault?.reason ?? "",
    checkpoint: walk.checkpoint,
  };
}

/** Where the log says that it ends, whether that is true to its tag, and where its rows begin and end. */
interface Ends {
  readonly stated: AuditHead;
  readonly isTrue: boolean;
  readonly firstRow: number;
  readonly lastRow: number;
  /** Whether there are records of which each has an entry of its making. */
  readonly hasRecords: boolean;
}

/** One statement, so that all are of one moment. */
async function readEnds({ db, owners, tagKey }: AuditVerificationDeps): Promise<Ends> {
  const { first_row, last_row, has_records, ...head } = await db
    .selectFrom((from) =>
      from
        .selectFrom("audit_entries")
        .select((row) => [row.fn.min("sequence").as("first_row"), row.fn.max("sequence").as("last_row")])
        .as("entries"),
    )
    .leftJoin("audit_head", (join) => join.onTrue())
    .selectAll()
    .select(hasRows(listAuditedTables(owners)).as("has_records"))
    .executeTakeFirstOrThrow();
  const rows = { firstRow: first_row ?? 1, lastRow: last_row ?? 0, hasRecords: Boolean(has_records) };
  // Before the first entry there is no head.
  if (head.sequence === null) return { ...rows, stated: emptyChain, isTrue: last_row === null };
  const stated: AuditHead = { sequence: head.sequence, entryHash: head.entry_hash ?? "" };
  return { ...rows, stated, isTrue: equalTags(head.head_tag ?? "", tagHead(tagKey, stated)) };
}

function hasRows(tables: readonly string[]): RawBuilder<boolean | number> {
  const parts = tables.map((table) => sql`exists (select 1 from ${sql.table(table)})`);
  return sql<boolean | number>`(${sql.join([sql`1 = 0`, ...parts], sql` or `)})`;
}

/** A chain without a fault may yet have lost its last entries, or all, or have too many. */
function findFaultOfEnds({ last, checkpoint }: Walk, ends: Ends): Fault | undefined {
  const { stated, isTrue, firstRow, lastRow, hasRecords } = ends;
  if (firstRow < 1) return { sequence: 1, reason: "there is an entry before the first" };
  if (stated.sequence === 0 && hasRecords)
    return { sequence: 1, reason: "the entry is missing: nothing tells of the making of the keys" };
  // The entries that are there were written by this program, as their tags say.
  if (!isTrue)
    return { sequence: last.sequence + 1, reason: "the end of the log was changed; entries are missing" };
  if (last.sequence < stated.sequence) return { sequence: last.sequence + 1, reason: "the entry is missing" };
  if (last.sequence === stated.sequence && last.entryHash !== stated.entryHash) {
    const reason = "the end of the log is that of another history";
    return { sequence: (checkpoint?.sequence ?? 0) + 1, reason };
  }
  if (lastRow > stated.sequence)
    return { sequence: stated.sequence + 1, reason: "the entry is beyond the end of the log" };
  return undefined;
}

/** A log may be whole, and an older one. */
function findPutBack({ last }: Walk, seen: AuditHead): Fault | undefined {
  if (last.sequence >= seen.sequence) return undefined;
  return { sequence: last.sequence + 1, reason: "the entry is missing: an older log was put back" };
}

interface Walk {
  readonly entries: number;
  readonly last: AuditHead;
  readonly fault: Fault | undefined;
  readonly checkpoint: SignedCheckpoint | undefined;
}

/** Follows the chain; counts on to its end after the first fault, but looks for no second one. */
async function walkChain(
  deps: AuditVerificationDeps,
  end: number,
  checkpoints: readonly SignedCheckpoint[],
): Promise<Walk> {
  let entries = 0;
  // An entry before the first is one too many.
  let position = Number.MIN_SAFE_INTEGER;
  let last = emptyChain;
  let fault: Fault | undefined;
  let checkpoint: SignedCheckpoint | undefined;
  const waiting = [...checkpoints];
  for (;;) {
    deps.signal?.throwIfAborted();
    const rows = await readEntryRows(deps.db, position, chunkRows, end);
    for (const row of rows) {
      entries += 1;
      fault ??= checkRow(row, last, deps.tagKey) ?? checkSeen(row, deps.seen);
      last = { sequence: row.sequence, entryHash: row.entry_hash };
      while (fault === undefined && waiting[0] !== undefined && waiting[0].sequence <= row.sequence) {
        const due = waiting.shift() as SignedCheckpoint;
        fault = await checkCheckpoint(deps, due, last);
        if (fault === undefined) checkpoint = due;
      }
    }
    position = rows.at(-1)?.sequence ?? position;
    deps.onProgress?.(entries, Math.max(end, entries));
    if (rows.length < chunkRows) break;
    await setImmediate();
  }
  if (fault === undefined && waiting[0] !== undefined)
    fault = {
      sequence: last.sequence + 1,
      reason: "the entry is missing: a signed checkpoint is beyond the end",
    };
  return { entries, last, fault, checkpoint };
}

function checkRow(row: AuditEntriesTable, previous: AuditHead, tagKey: Uint8Array): Fault | undefined {
  const expected = previous.sequence + 1;
  if (row.sequence < expected) return { sequence: expected, reason: "there is an entry before the first" };
  if (row.sequence !== expected) return { sequence: expected, reason: "the entry is missing" };
  if (hashEntry(toEntry(row), previous.entryHash) !== row.entry_hash)
    return { sequence: expected, reason: "the entry is not as it was written" };
  if (!equalTags(row.entry_tag, tagEntry(tagKey, row.entry_hash)))
    return { sequence: expected, reason: "the entry was not written by this program" };
  return undefined;
}

function checkSeen(row: AuditEntriesTable, seen: AuditHead): Fault | undefined {
  if (row.sequence !== seen.sequence || row.entry_hash === seen.entryHash) return undefined;
  return { sequence: row.sequence, reason: "the log is not the one that this server saw" };
}

async function checkCheckpoint(
  { verifyCheckpoint }: AuditVerificationDeps,
  checkpoint: SignedCheckpoint,
  head: AuditHead,
): Promise<Fault | undefined> {
  const { sequence, entryHash } = checkpoint;
  if (!(await verifyCheckpoint(checkpoint)))
    return { sequence, reason: `the checkpoint at entry ${sequence} has no valid signature` };
  if (sequence === head.sequence && entryHash === head.entryHash) return undefined;
  return { sequence, reason: "the log is not the one that a signed checkpoint saw" };
}

/** Checkpoints in their order, also those beyond the end: they tell that it was cut off. */
async function readCheckpoints(
  { db, outside }: AuditVerificationDeps,
  end: number,
): Promise<SignedCheckpoint[]> {
  const rows = await db.selectFrom("audit_checkpoints").selectAll().orderBy("sequence").execute();
  // A checkpoint of entries that were written after we looked where the end is says nothing of a cut.
  const now = rows.some(({ sequence }) => sequence > end) ? await readEnd(db) : end;
  const inside = rows.map(toCheckpoint).filter(({ sequence }) => sequence <= end || sequence > now);
  return [...inside, ...(outside ? [outside] : [])].sort((a, b) => a.sequence - b.sequence);
}

async function readEnd(db: Reader): Promise<number> {
  const row = await db.selectFrom("audit_head").select("sequence").where("id", "=", 1).executeTakeFirst();
  return row?.sequence ?? 0;
}

/** A checkpoint out of its row. */
export function toCheckpoint(row: AuditCheckpointsTable): SignedCheckpoint {
  return {
    sequence: row.sequence,
    entryHash: row.entry_hash,
    signedAt: readTime(row.signed_at_ms),
    signature: row.signature,
  };
}
