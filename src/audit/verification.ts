/** Verifies the audit chain to its end and against its checkpoints. */
import { type RawBuilder, sql } from "kysely";
import type { Reader } from "../database/database.ts";
import { StorageError } from "../database/store-error.ts";
import { fromRow } from "../records/columns.ts";
import { equalTags } from "../records/tag.ts";
import { type AuditCheckpoint, type AuditHead, emptyChain, tagHead } from "./chain.ts";
import { readHead } from "./log.ts";
import type { WalkOptions } from "./run-walk.ts";
import { checkpointColumns, keyLog, type LogTables } from "./tables.ts";
import type { Fault, Walk, WalkedCheckpoint, WalkedTree, WalkInput } from "./walk.ts";

export interface SignedCheckpoint extends AuditCheckpoint {
  /** ML-DSA-65 over checkpointMessage. */
  readonly signature: Uint8Array;
}

/** The store did not sign a checkpoint, or not for this log. */
export class CheckpointInvalidError extends StorageError {
  constructor() {
    super("the checkpoint to compare with was not signed by this store for this log, or was changed");
  }
}

/** What a verification found. */
export interface AuditVerification {
  readonly valid: boolean;
  /** Number of entries in the log. */
  readonly entries: number;
  /** Hash of the last entry; 64 zeros for an empty log. */
  readonly head: string;
  /** The first entry that was changed or is missing; undefined if the log is valid. */
  readonly firstBrokenSequence: number | undefined;
  /** The problem with that entry, for people; empty if the log is valid. */
  readonly reason: string;
  /** The newest checkpoint that matches the log. */
  readonly checkpoint: SignedCheckpoint | undefined;
  /** The first verified entry: 1 unless this verification continued an earlier one. */
  readonly verifiedFrom: number;
}

/** The result, with the input for verifying the tree over the entries. */
export interface EntriesVerification extends AuditVerification {
  /** Present if sizes were given and the log is valid. */
  readonly tree: WalkedTree | undefined;
}

export interface AuditVerificationDeps {
  readonly db: Reader;
  /** The log to verify; defaults to the key log. */
  readonly log?: LogTables;
  /** Tables in which every row has an entry in the log. */
  readonly recorded: readonly string[];
  /** RootKeys.audit */
  readonly tagKey: Uint8Array;
  readonly verifyCheckpoint: (checkpoint: SignedCheckpoint) => Promise<boolean>;
  /** An end of the log that this program has seen; the log must still contain it. */
  readonly seen: AuditHead;
  /** An externally stored checkpoint; the log must still match it. */
  readonly outside?: SignedCheckpoint | undefined;
  /** Walks the entries on a worker thread. */
  readonly walk: (input: WalkInput, options: WalkOptions) => Promise<Walk | undefined>;
  /**
   * End of an earlier verification to continue from, at a multiple of 256. If omitted, all entries are
   * verified.
   */
  readonly after?: AuditHead | undefined;
  /** Tree sizes whose roots to compute over the entries. If omitted, leaves are not hashed. */
  readonly treeSizes?: readonly number[] | undefined;
  /** Called periodically with the number of checked entries and the total. */
  readonly onProgress?: ((checked: number, total: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Verifies the log up to its end at the start of the call; the next verification covers later entries. If the
 * entries up to `after` have changed, verifies all entries.
 *
 * @throws CheckpointInvalidError for an external checkpoint, which then proves nothing about the log
 */
export async function verifyAuditLog(deps: AuditVerificationDeps): Promise<EntriesVerification> {
  const {
    after = emptyChain,
    outside,
    verifyCheckpoint,
    signal,
    log = keyLog,
    tagKey,
    seen,
    treeSizes,
  } = deps;
  signal?.throwIfAborted();
  if (outside && !(await verifyCheckpoint(outside))) throw new CheckpointInvalidError();
  const ends = await readEnds(deps);
  // The program never writes unsafe integers. A row with one lies beyond the walk and is reported for that.
  const end = Math.min(Math.max(ends.stated.sequence, ends.lastRow), Number.MAX_SAFE_INTEGER);
  const checkpoints = (await readCheckpoints(deps, end)).filter(({ sequence }) => sequence >= after.sequence);
  const walked: WalkedCheckpoint[] = [];
  for (const checkpoint of checkpoints) {
    const { sequence, entryHash } = checkpoint;
    walked.push({ sequence, entryHash, isSigned: await verifyCheckpoint(checkpoint) });
  }
  const walk = await deps.walk(
    { log, tagKey, after, end, seen, checkpoints: walked, treeSizes },
    { signal, onPage: (entries) => deps.onProgress?.(entries, Math.max(end, entries)) },
  );
  if (walk === undefined) return verifyAuditLog({ ...deps, after: emptyChain });
  const checkpoint = checkpoints[walk.agreeing - 1];
  const fault = walk.fault ?? findFaultOfEnds({ ...walk, checkpoint }, ends) ?? findPutBack(walk, seen);
  return {
    valid: fault === undefined,
    entries: walk.entries,
    head: walk.last.entryHash,
    firstBrokenSequence: fault?.sequence,
    reason: fault?.reason ?? "",
    checkpoint,
    verifiedFrom: after.sequence + 1,
    tree: fault === undefined ? walk.tree : undefined,
  };
}

/** The stored end of the log, whether it matches its tag, and the first and last rows. */
interface Ends {
  readonly stated: AuditHead;
  readonly isTrue: boolean;
  readonly firstRow: number;
  readonly lastRow: number;
  /** Whether records exist whose creation must have an entry. */
  readonly hasRecords: boolean;
}

/** Reads all values in one statement, so that they are consistent. */
async function readEnds({ db, recorded, tagKey, log = keyLog }: AuditVerificationDeps): Promise<Ends> {
  const { first_row, last_row, has_records, ...head } = await db
    .selectFrom((from) =>
      from
        .selectFrom(log.entries)
        .select((row) => [row.fn.min("sequence").as("first_row"), row.fn.max("sequence").as("last_row")])
        .as("entries"),
    )
    .leftJoin(
      (from) => from.selectFrom(log.head).selectAll().where("id", "=", 1).as("head"),
      (join) => join.onTrue(),
    )
    .selectAll()
    .select(hasRows(recorded).as("has_records"))
    .executeTakeFirstOrThrow();
  const rows = { firstRow: first_row ?? 1, lastRow: last_row ?? 0, hasRecords: Boolean(has_records) };
  // Before the first entry, the log has no stored end.
  if (head.sequence === null) return { ...rows, stated: emptyChain, isTrue: last_row === null };
  const stated: AuditHead = { sequence: head.sequence, entryHash: head.entry_hash ?? "" };
  return { ...rows, stated, isTrue: equalTags(head.head_tag ?? "", tagHead(tagKey, stated)) };
}

function hasRows(tables: readonly string[]): RawBuilder<boolean | number> {
  const parts = tables.map((table) => sql`exists (select 1 from ${sql.table(table)})`);
  return sql<boolean | number>`(${sql.join([sql`1 = 0`, ...parts], sql` or `)})`;
}

/** Finds missing or extra entries at the ends of an otherwise valid chain. */
function findFaultOfEnds(
  { last, checkpoint }: Pick<Walk, "last"> & { readonly checkpoint: AuditHead | undefined },
  ends: Ends,
): Fault | undefined {
  const { stated, isTrue, firstRow, lastRow, hasRecords } = ends;
  if (firstRow < 1) return { sequence: 1, reason: "an entry precedes the first one" };
  if (stated.sequence === 0 && hasRecords)
    return {
      sequence: 1,
      reason: "the entry is missing: the log does not record how the store's records were created",
    };
  // The tags show that this program wrote the existing entries.
  if (!isTrue)
    return { sequence: last.sequence + 1, reason: "the end of the log was changed; entries may be missing" };
  if (last.sequence < stated.sequence) return { sequence: last.sequence + 1, reason: "the entry is missing" };
  if (last.sequence === stated.sequence && last.entryHash !== stated.entryHash) {
    const reason = "the end of the log belongs to another log";
    return { sequence: (checkpoint?.sequence ?? 0) + 1, reason };
  }
  if (lastRow > stated.sequence)
    return { sequence: stated.sequence + 1, reason: "the entry is beyond the end of the log" };
  return undefined;
}

/** Detects a complete but older log that was restored. */
function findPutBack({ last }: Pick<Walk, "last">, seen: AuditHead): Fault | undefined {
  if (last.sequence >= seen.sequence) return undefined;
  return { sequence: last.sequence + 1, reason: "the entry is missing: an older log was restored" };
}

/** Reads checkpoints in order, including those beyond the end, which prove that the end was cut off. */
async function readCheckpoints(
  { db, outside, log = keyLog }: AuditVerificationDeps,
  end: number,
): Promise<SignedCheckpoint[]> {
  const rows = await db.selectFrom(log.checkpoints).selectAll().orderBy("sequence").execute();
  // A checkpoint of entries written after the end was read is not evidence of a cut.
  const now = rows.some(({ sequence }) => sequence > end) ? (await readHead(db, log)).sequence : end;
  const inside = rows
    .map((row): SignedCheckpoint => fromRow(checkpointColumns, row))
    .filter(({ sequence }) => sequence <= end || sequence > now);
  return [...inside, ...(outside ? [outside] : [])].sort((a, b) => a.sequence - b.sequence);
}
