/**
 * The part of a verification that reads every entry: it follows the chain and hashes the leaves of the tree
 * over it.
 */
import type { Reader } from "../database/database.ts";
import { countRows } from "../database/read-rows.ts";
import { createLeafHasher, type LeafHasher, type LeafTiles } from "../merkle/leaf-tiles.ts";
import { tileWidth } from "../merkle/tiles.ts";
import { equalTags } from "../records/tag.ts";
import { type AuditHead, hashEntry, tagEntry } from "./chain.ts";
import { readEntryRows, toEntry } from "./log.ts";
import { type AuditEntriesTable, keyLog, type LogTables } from "./tables.ts";

/** A problem in the log, and its position. */
export interface Fault {
  readonly sequence: number;
  readonly reason: string;
}

/** A checkpoint to compare with. */
export interface WalkedCheckpoint extends AuditHead {
  /** Whether its signature is valid. */
  readonly isSigned: boolean;
}

/** What to walk, as plain values that can be posted to a thread. */
export interface WalkInput {
  readonly log: LogTables;
  /** RootKeys.audit */
  readonly tagKey: Uint8Array;
  /** End of the entries that an earlier verification found valid; the empty chain to read all. */
  readonly after: AuditHead;
  /** The last entry to read. */
  readonly end: number;
  /** An end of the log that the program has seen. */
  readonly seen: AuditHead;
  /** In order; none before `after`. */
  readonly checkpoints: readonly WalkedCheckpoint[];
  /** Tree sizes whose roots to compute; undefined for a log without a tree. */
  readonly treeSizes: readonly number[] | undefined;
}

/** What a walk found. */
export interface Walk {
  readonly entries: number;
  readonly last: AuditHead;
  readonly fault: Fault | undefined;
  /** Number of checkpoints that match the log. */
  readonly agreeing: number;
  /** The tree over the entries, if requested and the entries have no fault. */
  readonly tree: WalkedTree | undefined;
}

/** The leaves of the tree over the entries. */
export interface WalkedTree {
  readonly leafTiles: LeafTiles;
  /** The last entry whose leaf completes a tile. */
  readonly tileEnd: AuditHead;
}

/** Entries to read at once: a multiple of the tile width. */
export const walkedRows = 5120;

/**
 * Follows the chain. After the first fault, it only counts the remaining entries.
 *
 * @param onPage called after each page with the number of entries so far
 * @returns undefined if the entries up to `after` differ from those verified earlier
 */
export async function walkChain(
  db: Reader,
  { log, tagKey, after, end, seen, checkpoints, treeSizes }: WalkInput,
  onPage: (entries: number) => void,
): Promise<Walk | undefined> {
  if (!(await hasAllUpTo(db, after, log))) return undefined;
  const tree = treeSizes && createLeafHasher(after.sequence, treeSizes);
  let entries = after.sequence;
  // Start below 1 to find an entry that precedes the first.
  let position = after.sequence === 0 ? Number.MIN_SAFE_INTEGER : after.sequence;
  let last = after;
  let fault: Fault | undefined;
  let agreeing = 0;
  let tileEnd = after;
  const compare = (): void => {
    for (let due = checkpoints[agreeing]; due && due.sequence <= last.sequence; due = checkpoints[agreeing]) {
      fault ??= checkCheckpoint(due, last);
      if (fault !== undefined) return;
      agreeing += 1;
    }
  };
  compare();
  for (;;) {
    const rows = await readEntryRows(db, position, walkedRows, end, log);
    for (const row of rows) {
      entries += 1;
      fault ??= checkRow(row, last, tagKey, log) ?? checkSeen(row, seen);
      last = { sequence: row.sequence, entryHash: row.entry_hash };
      if (fault !== undefined) continue;
      compare();
      if (tree === undefined) continue;
      addLeaf(tree, row.entry_hash);
      if (last.sequence % tileWidth === 0) tileEnd = last;
    }
    position = rows.at(-1)?.sequence ?? position;
    onPage(entries);
    if (rows.length < walkedRows) break;
  }
  if (fault === undefined && agreeing < checkpoints.length)
    fault = {
      sequence: last.sequence + 1,
      reason: "the entry is missing: a signed checkpoint is beyond the end",
    };
  const isTree = tree !== undefined && fault === undefined;
  return { entries, last, fault, agreeing, tree: isTree ? { leafTiles: tree.finish(), tileEnd } : undefined };
}

/** Returns whether a log still has an entry that was verified earlier, and as many entries up to it. */
async function hasAllUpTo(db: Reader, { sequence, entryHash }: AuditHead, log: LogTables): Promise<boolean> {
  if (sequence === 0) return true;
  const count = await countRows(db.selectFrom(log.entries).where("sequence", "<=", sequence));
  const row = await db
    .selectFrom(log.entries)
    .select("entry_hash")
    .where("sequence", "=", sequence)
    .executeTakeFirst();
  return count === sequence && row?.entry_hash === entryHash;
}

const leaf = Buffer.alloc(32);

/** @param entryHash equal to a computed hash, so it has 64 digits */
function addLeaf(tree: LeafHasher, entryHash: string): void {
  leaf.write(entryHash, "hex");
  tree.add(leaf);
}

/** Checks that the program wrote an entry, and that it follows the previous one. */
export function checkRow(
  row: AuditEntriesTable,
  previous: AuditHead,
  tagKey: Uint8Array,
  log: LogTables = keyLog,
): Fault | undefined {
  const expected = previous.sequence + 1;
  if (row.sequence < expected) return { sequence: expected, reason: "an entry precedes the first one" };
  if (row.sequence !== expected) return { sequence: expected, reason: "the entry is missing" };
  const entry = toEntry(row);
  if (hashEntry(entry, previous.entryHash, log) !== row.entry_hash)
    return { sequence: expected, reason: "the entry was changed" };
  if (!equalTags(row.entry_tag, tagEntry(tagKey, entry)))
    return { sequence: expected, reason: "the entry was not written by this program" };
  return undefined;
}

function checkSeen(row: AuditEntriesTable, seen: AuditHead): Fault | undefined {
  if (row.sequence !== seen.sequence || row.entry_hash === seen.entryHash) return undefined;
  return { sequence: row.sequence, reason: "the log differs from the one that this server saw" };
}

function checkCheckpoint(
  { sequence, entryHash, isSigned }: WalkedCheckpoint,
  head: AuditHead,
): Fault | undefined {
  if (!isSigned) return { sequence, reason: `the checkpoint at entry ${sequence} has no valid signature` };
  if (sequence === head.sequence && entryHash === head.entryHash) return undefined;
  return { sequence, reason: "the log differs from the one that a signed checkpoint covers" };
}
