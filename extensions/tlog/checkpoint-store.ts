/** Stores a log's published checkpoints. */
import type { Kysely } from "kysely";
import { readTime } from "../../src/database/row-values.ts";
import type { Schema } from "../../src/database/schema.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import type { Store } from "../../src/store/store.ts";
import { type Checkpoint, parseCheckpoint } from "./checkpoint.ts";
import { type Note, parseNote } from "./note.ts";
import type { TlogCheckpointsTable } from "./tables.ts";

/** A published checkpoint. */
export interface PublishedCheckpoint extends Checkpoint {
  readonly signedAt: Date;
  /** With the log's signatures, without the witnesses'. */
  readonly note: Note;
}

/** Number of newest checkpoints to keep, so that witnesses have time to cosign. */
const recentCheckpoints = 64;
/** Of older checkpoints, the last one per span of this many leaves is kept, as in the audit log. */
const spanLeaves = 10_000;

/** One log's checkpoints. */
export type CheckpointStore = ReturnType<typeof createCheckpointStore>;

export function createCheckpointStore(store: Pick<Store, "reader" | "tagRecord" | "isTagged">, log: string) {
  const listFields = (row: Omit<TlogCheckpointsTable, "record_tag">) => [
    "tlog_checkpoints",
    row.log,
    row.tree_size,
    row.root,
    row.signed_at_ms,
    row.note,
  ];
  const select = (db: Store["reader"]) => selectOf(db, log).selectAll();
  const readRow = (row: TlogCheckpointsTable): PublishedCheckpoint => {
    if (!store.isTagged(listFields(row), row.record_tag)) throw damaged(log, row.tree_size);
    // The tag proves that this program wrote the note.
    const note = parseNote(Buffer.from(row.note));
    const { origin } = parseCheckpoint(note.text);
    return { origin, size: row.tree_size, root: row.root, signedAt: readTime(row.signed_at_ms), note };
  };
  const readOne = async (query: ReturnType<typeof select>): Promise<PublishedCheckpoint | undefined> => {
    const row = await query.executeTakeFirst();
    return row && readRow(row);
  };
  return {
    /**
     * Reads the newest checkpoint.
     *
     * @throws RecordDamagedError if it was modified
     */
    readNewest: (db: Store["reader"] = store.reader) =>
      readOne(select(db).orderBy("tree_size", "desc").limit(1)),
    /**
     * Reads the checkpoint of a given size.
     *
     * @throws RecordDamagedError if it was modified
     */
    find: (size: number, db: Store["reader"] = store.reader) =>
      readOne(select(db).where("tree_size", "=", size)),
    /** Reads only the newest checkpoint's size. */
    async readNewestSize(): Promise<number | undefined> {
      const row = await selectOf(store.reader, log)
        .select("tree_size")
        .orderBy("tree_size", "desc")
        .limit(1)
        .executeTakeFirst();
      return row?.tree_size;
    },
    /** Reads the sizes of the checkpoints after a given size, in order. */
    async listSizes(after: number, limit: number): Promise<number[]> {
      const rows = await selectOf(store.reader, log)
        .select("tree_size")
        .where("tree_size", ">", after)
        .orderBy("tree_size")
        .limit(limit)
        .execute();
      return rows.map(({ tree_size }) => tree_size);
    },
    /** Adds a checkpoint within a transaction, replacing one of the same size under a different origin. */
    async insert(
      db: Kysely<Schema>,
      { size, root, signedAt }: Omit<PublishedCheckpoint, "note">,
      note: string,
    ) {
      await remove(db, log, size);
      const row = { log, tree_size: size, root, signed_at_ms: signedAt.getTime(), note };
      await db
        .insertInto("tlog_checkpoints")
        .values({ ...row, record_tag: store.tagRecord(listFields(row)) })
        .execute();
      await prune(db, log);
    },
  };
}

function selectOf(db: Store["reader"], log: string) {
  return db.selectFrom("tlog_checkpoints").where("log", "=", log);
}

/**
 * Removes checkpoints that are no longer recent. The last one in each span stays, and so does the newest one
 * cosigned by a witness.
 */
async function prune(db: Kysely<Schema>, log: string): Promise<void> {
  const [edge, ...older] = await selectOf(db, log)
    .select("tree_size")
    .orderBy("tree_size", "desc")
    .offset(recentCheckpoints - 1)
    .limit(3)
    .execute();
  if (edge === undefined) return;
  const [newestCosigned, ...cosigned] = await db
    .selectFrom("tlog_cosignatures")
    .select("tree_size")
    .distinct()
    .where("log", "=", log)
    .orderBy("tree_size", "desc")
    .limit(3)
    .execute();
  const sizes = new Set([...older, ...cosigned].map(({ tree_size }) => tree_size));
  for (const size of sizes) {
    if (size >= edge.tree_size || size === newestCosigned?.tree_size) continue;
    const next = await selectOf(db, log)
      .select("tree_size")
      .where("tree_size", ">", size)
      .orderBy("tree_size")
      .limit(1)
      .executeTakeFirst();
    if (next !== undefined && spanOf(next.tree_size) === spanOf(size)) await remove(db, log, size);
  }
}

async function remove(db: Kysely<Schema>, log: string, size: number): Promise<void> {
  for (const table of ["tlog_checkpoints", "tlog_cosignatures"] as const)
    await db.deleteFrom(table).where("log", "=", log).where("tree_size", "=", size).execute();
}

/** The error for a checkpoint that was modified outside the server. */
export function damaged(log: string, size: number): RecordDamagedError {
  return new RecordDamagedError(`checkpoint of size ${size} of the log ${log}`);
}

/** The span of a size: sizes 1 to 10,000 form the first span. */
function spanOf(size: number): number {
  return Math.floor((size - 1) / spanLeaves);
}
