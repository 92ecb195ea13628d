/** Stores blocks and the end of the chain. */
import { RecordDamagedError } from "../../database/store-error.ts";
import { fromRow, type RecordOf, toRow } from "../../records/columns.ts";
import { countForOwner } from "../../records/list-counts.ts";
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

/** The name of the list of blocks, in page tokens and counts. */
export const blockList = "blockchain_blocks";
/** Counts the blocks of an owner's validators. */
export const blockQuota = recordQuota(blockList, "blocks");
/** Bytes of blocks to hold in memory for one reader. A block may have 64 KiB, and there may be many readers. */
const maxReadBytes = 1024 * 1024;

/** The approximate size of a block in JSON: its bytes in base64, hashes, time and field names. */
export function estimateBlockBytes({ data, signature }: Pick<Block, "data" | "signature">): number {
  return estimateBytes(data.length, signature.length);
}

function estimateBytes(dataBytes: number, signatureBytes: number): number {
  return ((dataBytes + signatureBytes) * 4) / 3 + 450;
}

/** Creates the store of blocks on top of the shared store. */
export function createBlockStore(store: Store) {
  const heads = openTable(store, headTable);
  const selectBlocks = (fromIndex: number, limit: number) =>
    store.reader
      .selectFrom("blockchain_blocks")
      .where("block_index", ">=", fromIndex)
      .orderBy("block_index")
      .limit(limit);
  /** Counts the blocks from an index on that fit into `maxBytes`, at least 1. Reads only their lengths. */
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
   * Reads blocks from an index on, as they are stored. Returns fewer than the limit if they are large, and none only at
   * the end.
   *
   * @param maxBytes how many bytes of blocks to read; a larger first block is read anyway.
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
     * Reads the end of the chain; a new chain ends with genesis.
     *
     * @param db the connection of a transaction; default: the reader
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
    /** Reads the number of blocks, genesis included, from the blocks themselves. */
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
      countForOwner(db, blockQuota, owner, added),
    /** Lists blocks in order; cuts a page before it gets too large. */
    async listBlocks(request: PageRequest): Promise<Page<Block>> {
      // Positions of a list count from 1, indexes from 0.
      // Reads more than fits into a page; otherwise the page would look like the last one.
      const rows = await readBlocks(request.after, request.limit + 1, 2 * maxPageBytes);
      return cutPage(rows, request, blockList, ({ index }) => index + 1, estimateBlockBytes);
    },
  };
}
