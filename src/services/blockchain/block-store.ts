/** What the chain service keeps of blocks, and where the chain ends. */
import { RecordDamagedError } from "../../database/store-error.ts";
import { fromRow, type RecordOf, toRow } from "../../records/columns.ts";
import { changeCounts } from "../../records/list-counts.ts";
import { listSeenBy } from "../../records/ownership.ts";
import { cutPage, maxPageBytes, type Page, type PageRequest } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable } from "../../records/record-table.ts";
import { intact } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { type Block, genesis } from "./block.ts";
import { blockColumns, headTable } from "./tables.ts";

/** Where the chain ends. */
export type ChainHead = RecordOf<typeof headTable.columns>;

const headId = 1;

/** Names the list of blocks, for page tokens and counts. */
export const blockList = "blockchain_blocks";
/** Counts the blocks of an owner's validators. */
export const blockQuota = recordQuota(blockList, "blocks");
/** Bytes of blocks to have in memory for one who reads; a block may have 64 KiB, and there may be many who read. */
const maxReadBytes = 1024 * 1024;

/** The approximate size of a block in JSON: its bytes in base64, its hashes, its time and the names of all. */
export function estimateBlockBytes({ data, signature }: Pick<Block, "data" | "signature">): number {
  return estimateBytes(data.length, signature.length);
}

function estimateBytes(dataBytes: number, signatureBytes: number): number {
  return ((dataBytes + signatureBytes) * 4) / 3 + 450;
}

/** Makes the store of blocks on the store of all. */
export function createBlockStore(store: Store) {
  const heads = openTable(store, headTable);
  const selectBlocks = (fromIndex: number, limit: number) =>
    store.reader
      .selectFrom("blockchain_blocks")
      .where("block_index", ">=", fromIndex)
      .orderBy("block_index")
      .limit(limit);
  /** How many blocks from an index on fit into so many bytes; at least 1. Reads only how long they are. */
  const countFitting = async (fromIndex: number, limit: number, maxBytes: number): Promise<number> => {
    const sizes = await selectBlocks(fromIndex, limit)
      .select(({ fn }) => [
        fn<number>("length", ["data"]).as("data_bytes"),
        fn<number>("length", ["signature"]).as("signature_bytes"),
      ])
      .execute();
    let bytes = 0;
    const tooMany = sizes.findIndex(({ data_bytes, signature_bytes }, i) => {
      bytes += estimateBytes(data_bytes, signature_bytes);
      return i > 0 && bytes > maxBytes;
    });
    return tooMany < 0 ? limit : tooMany;
  };
  /**
   * Reads blocks from an index on, as they are stored: fewer than the limit where they are large, none only at the end.
   *
   * @param maxBytes of blocks to read; a first block that is larger is read all the same.
   */
  const readBlocks = async (fromIndex: number, limit: number, maxBytes = maxReadBytes): Promise<Block[]> => {
    const first = Math.max(fromIndex, 1);
    const rows = await selectBlocks(first, await countFitting(first, limit, maxBytes))
      .selectAll()
      .execute();
    const blocks = rows.map((row) => fromRow(blockColumns, row));
    // Genesis is the same in every chain, so it is not stored.
    return fromIndex <= 0 ? [genesis, ...blocks].slice(0, limit) : blocks;
  };
  return {
    readBlocks,
    /**
     * Reads the end of the chain; that of a new one is genesis.
     *
     * @param db of a transaction; else the reader
     * @throws RecordDamagedError
     */
    async readHead(db = store.reader): Promise<ChainHead> {
      const head = await heads.findIntact({}, { db });
      if (head !== undefined) return head;
      const block = await db
        .selectFrom("blockchain_blocks")
        .select("block_index")
        .limit(1)
        .executeTakeFirst();
      if (block !== undefined) throw new RecordDamagedError("end of the chain");
      return { length: 1, headHash: genesis.blockHash };
    },
    /** The number of blocks, genesis included, as the blocks themselves say. */
    async readLength(): Promise<number> {
      const { newest } = await store.reader
        .selectFrom("blockchain_blocks")
        .select(({ fn }) => fn.max<number | null>("block_index").as("newest"))
        .executeTakeFirstOrThrow();
      return (newest ?? 0) + 1;
    },
    /** Appends blocks that follow the head, within a transaction. */
    async append(transaction: WriteTransaction, head: ChainHead, blocks: readonly Block[]): Promise<void> {
      const last = blocks.at(-1);
      if (last === undefined) return;
      const rows = blocks.map((block) => toRow(blockColumns, block));
      await transaction.db.insertInto("blockchain_blocks").values(rows).execute();
      const moved = { length: head.length + blocks.length, headHash: last.blockHash };
      if (head.length > 1) await heads.update(transaction, intact(head), moved);
      else await heads.insert(transaction, moved, undefined, { id: headId });
    },
    /** Counts blocks for the owner of their validator, within a transaction. */
    countBlocks: ({ db }: WriteTransaction, owner: string, added: number) =>
      changeCounts(db, [listSeenBy({ owner }, blockList)], added),
    /** Lists blocks in their order; a page is cut where it would be too large. */
    async listBlocks(request: PageRequest): Promise<Page<Block>> {
      // Positions of a list count from 1, indexes from 0.
      // More than a page takes, or the page would look like the last one.
      const rows = await readBlocks(request.after, request.limit + 1, 2 * maxPageBytes);
      return cutPage(rows, request, blockList, ({ index }) => index + 1, estimateBlockBytes);
    },
  };
}
