/** Stores the contents of targets in pieces, so that neither an upload nor a download needs memory for all of them. */
import { createHash, randomUUID } from "node:crypto";
import { createCallerMutex } from "../../src/calls/caller-mutex.ts";
import { poll } from "../../src/database/poll.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { refuse } from "../../src/errors.ts";
import type { ByteRange } from "../../src/http/byte-ranges.ts";
import type { Store } from "../../src/store/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import { reasons } from "./reasons.ts";

/** Limits of contents, in bytes; 0 means no limit. */
export interface ContentLimits {
  readonly perTarget: number;
  readonly perOwner: number;
}

/** A stored content. */
export interface Content {
  readonly contentId: string;
  readonly length: number;
  readonly sha256: Uint8Array;
  readonly sha512: Uint8Array;
}

/** Bytes of a piece: a row. */
const pieceBytes = 256 * 1024;
/** Bytes of a part that `read` returns. */
const partBytes = 64 * 1024;
/** Milliseconds that an upload may pause between two pieces before the sweep takes it for abandoned. */
const maxPauseMs = 3600_000;
const sweepMs = 60_000;
/** Pieces to delete in one transaction, so that other callers can write in between: 4 MiB. */
const erasedAtOnce = 16;
/** Pieces of an upload between two checks of the quota, which add up all contents of the owner: 4 MiB. */
const checkedAtOnce = 16;

/** A download that ends while it waits for its turn takes it, and stops then. */
const noSignal = new AbortController().signal;

export type ContentStore = ReturnType<typeof createContentStore>;

export function createContentStore(store: Store, limits: ContentLimits, now: () => Date) {
  // The thread that reads pieces reads for all other calls too: a caller's many downloads take turns.
  const readInTurn = createCallerMutex();
  /**
   * Checks the quota. Contents to be removed do not count.
   *
   * @throws QUOTA_EXCEEDED
   */
  const requireRoom = async (db: Store["reader"], owner: string): Promise<void> => {
    if (limits.perOwner === 0) return;
    const { used } = await db
      .selectFrom("tuf_contents")
      .select(({ fn }) => fn.sum<number | null>("content_length").as("used"))
      .where("owner", "=", owner)
      .where((where) => where.or([where("expires_at_ms", "is", null), where("expires_at_ms", ">", 0)]))
      .executeTakeFirstOrThrow();
    if (Number(used) > limits.perOwner) throw quotaExceeded(limits.perOwner);
  };
  /** Changes an unfinished upload, unless it was removed as abandoned. */
  const change = async (
    { db }: Pick<WriteTransaction, "db">,
    contentId: string,
    changes: { content_length?: number; expires_at_ms: number | null },
  ): Promise<void> => {
    const { numUpdatedRows } = await db
      .updateTable("tuf_contents")
      .set(changes)
      .where("content_id", "=", contentId)
      .where("expires_at_ms", ">", 0)
      .executeTakeFirstOrThrow();
    if (numUpdatedRows !== 1n) throw new Error(`content ${contentId} was removed before it had a target`);
  };
  const writePiece = (contentId: string, owner: string, index: number, piece: Uint8Array) =>
    store.write(async ({ db }) => {
      const content = {
        content_length: index * pieceBytes + piece.length,
        expires_at_ms: now().getTime() + maxPauseMs,
      };
      if (index === 0)
        await db
          .insertInto("tuf_contents")
          .values({ content_id: contentId, owner, ...content })
          .execute();
      else await change({ db }, contentId, content);
      await db
        .insertInto("tuf_pieces")
        .values({ content_id: contentId, piece_index: index, piece })
        .execute();
      if (index % checkedAtOnce === 0) await requireRoom(db, owner);
    });
  /** Marks contents for removal. */
  const remove = async (
    { db }: Pick<WriteTransaction, "db">,
    contentIds: readonly string[],
  ): Promise<void> => {
    const query = db.updateTable("tuf_contents").set({ expires_at_ms: 0 });
    await query.where("content_id", "in", contentIds).execute();
  };
  /**
   * Deletes the first pieces of a content that is due, and the content if it has none.
   *
   * @returns whether pieces may be left
   */
  const erasePieces = (contentId: string): Promise<boolean> =>
    store.write(async ({ db }) => {
      // From now on, an upload that only paused cannot go on without its first pieces.
      const { numUpdatedRows } = await db
        .updateTable("tuf_contents")
        .set({ expires_at_ms: 0 })
        .where("content_id", "=", contentId)
        .where("expires_at_ms", "<=", now().getTime())
        .executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) return false;
      const first = await db
        .selectFrom("tuf_pieces")
        .select("piece_index")
        .where("content_id", "=", contentId)
        .orderBy("piece_index")
        .limit(erasedAtOnce)
        .execute();
      const indexes = first.map(({ piece_index }) => piece_index);
      if (indexes.length === 0) {
        await db.deleteFrom("tuf_contents").where("content_id", "=", contentId).execute();
        return false;
      }
      await db
        .deleteFrom("tuf_pieces")
        .where("content_id", "=", contentId)
        .where("piece_index", "in", indexes)
        .execute();
      return true;
    });
  /** Deletes contents that `remove` has marked, in several transactions. */
  const erase = async (contentIds: readonly string[]): Promise<void> => {
    for (const contentId of contentIds) while (await erasePieces(contentId));
  };
  /** Deletes the contents of removed targets, and uploads that ended without a target. */
  const sweep = async (): Promise<void> => {
    const due = await store.reader
      .selectFrom("tuf_contents")
      .select("content_id")
      .where("expires_at_ms", "<=", now().getTime())
      .execute();
    await erase(due.map(({ content_id }) => content_id));
  };
  /** Deletes an upload that did not become a target. */
  const discard = async (contentId: string): Promise<void> => {
    await store.write(async ({ db }) => {
      const query = db.updateTable("tuf_contents").set({ expires_at_ms: 0 });
      // A transaction can fail although it was committed: a target's content stays.
      await query.where("content_id", "=", contentId).where("expires_at_ms", "is not", null).execute();
    });
    await erase([contentId]);
  };
  /** @throws TARGET_TOO_LARGE */
  const requireFit = (length: number): void => {
    if (limits.perTarget > 0 && length > limits.perTarget) throw targetTooLarge(limits.perTarget);
  };
  return {
    requireFit,
    /**
     * Stores a stream as it arrives. `keep` or `discard` must follow; otherwise, the sweep removes the content
     * after an hour.
     *
     * @throws TARGET_TOO_LARGE, QUOTA_EXCEEDED, and the errors of the stream
     */
    async write(owner: string, stream: AsyncIterable<Uint8Array>): Promise<Content> {
      const contentId = randomUUID();
      const [sha256, sha512] = [createHash("sha256"), createHash("sha512")];
      let length = 0;
      try {
        let index = 0;
        for await (const piece of cutPieces(stream)) {
          length += piece.length;
          requireFit(length);
          sha256.update(piece);
          sha512.update(piece);
          await writePiece(contentId, owner, index, piece);
          index += 1;
        }
      } catch (error) {
        await discard(contentId);
        throw error;
      }
      return { contentId, length, sha256: sha256.digest(), sha512: sha512.digest() };
    },
    /**
     * Keeps a content, within the transaction that adds its target.
     *
     * @throws QUOTA_EXCEEDED
     */
    async keep(transaction: WriteTransaction, owner: string, { contentId }: Content): Promise<void> {
      await requireRoom(transaction.db, owner);
      await change(transaction, contentId, { expires_at_ms: null });
    },
    discard,
    /**
     * Marks contents that no target needs, within a transaction. `erase` deletes their pieces afterwards, a few at
     * a time; otherwise, the sweep does.
     */
    remove,
    erase,
    /**
     * Reads a part of a content.
     *
     * @throws RecordDamagedError if a piece is missing
     */
    async *read(contentId: string, { from, to }: ByteRange): AsyncGenerator<Uint8Array> {
      for (let at = from; at < to; ) {
        const index = Math.floor(at / pieceBytes);
        const row = await readInTurn(store.callerOf(), noSignal, () =>
          store.reader
            .selectFrom("tuf_pieces")
            .select("piece")
            .where("content_id", "=", contentId)
            .where("piece_index", "=", index)
            .executeTakeFirst(),
        );
        const end = Math.min(to, (index + 1) * pieceBytes);
        const part = row?.piece.subarray(at - index * pieceBytes, end - index * pieceBytes);
        if (part?.length !== end - at) throw new RecordDamagedError(`piece ${index} of content ${contentId}`);
        for (let start = 0; start < part.length; start += partBytes)
          yield part.subarray(start, start + partBytes);
        at = end;
      }
    },
    sweep,
    /**
     * Sweeps at an interval.
     *
     * @returns a function that stops
     */
    startSweeping: () =>
      poll({ work: "tuf_sweep_contents", everyMs: sweepMs, background: store.background }, sweep),
  };
}

/** Cuts a stream into pieces of equal size, except the last. */
async function* cutPieces(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    let at = 0;
    while (size + chunk.length - at >= pieceBytes) {
      const end = at + pieceBytes - size;
      yield Buffer.concat([...waiting, chunk.subarray(at, end)]);
      [waiting, size, at] = [[], 0, end];
    }
    if (at === chunk.length) continue;
    waiting.push(chunk.subarray(at));
    size += chunk.length - at;
  }
  if (size > 0) yield Buffer.concat(waiting);
}

function targetTooLarge(maxBytes: number): Error {
  return refuse(
    reasons.targetTooLarge,
    `the content exceeds the limit of ${maxBytes} bytes; ask the operator to raise --tuf-max-target-bytes`,
    { maxBytes: String(maxBytes) },
  );
}

function quotaExceeded(limit: number): Error {
  const message = `your quota of ${limit} bytes of targets is used up; remove drafts, or ask the operator to raise --tuf-max-bytes-per-user. Published targets count until no client can read them`;
  return refuse("QUOTA_EXCEEDED", message, { limit: String(limit) });
}
