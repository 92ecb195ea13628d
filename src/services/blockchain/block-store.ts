/** Stores blocks and the head of the chain. */
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

export type ChainHead = RecordOf<typeof headTable.columns>;

const headId = 1;

/** List name in page tokens and counts. */
export const blockList = "blockchain_blocks";
/** Quota for the blocks of an owner's validators. */
export const blockQuota = recordQuota(blockList, "blocks");
/** Maximum block bytes to buffer per reader. A block may have 64 KiB, and readers may be many. */
const maxReadBytes = 1024 * 1024;

/** Estimates a block's size in JSON: its bytes in base64, hashes, time and field names. */
export function estimateBlockBytes({ data, signature }: Pick<Block, "data" | "signature">): number {
  return estimateBytes(data.length, signature.length);
}

function estimateBytes(dataBytes: number, signatureBytes: number): number {
  return ((dataBytes + signatureBytes) * 4) / 3 + 450;
}

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
   * Reads stored blocks from an index on. Returns fewer than `limit` if blocks are large, and none only at
   * the end.
   *
   * @param maxBytes maximum block bytes to read; a larger first block is read anyway
   */
  const readBlocks = async (fromIndex: number, limit: number, maxBytes = maxReadBytes): Promise<Block[]> => {
    const first = Math.max(fromIndex, 1);
    const rows = await selectBlocks(first, await countFitting(first, limit, maxBytes))
      .selectAll()
      .execute();
    const blocks = rows.map((row) => fromRow(blockColumns, row));
    // Genesis is the same in every chain and therefore not stored.
    return fromIndex <= 0 ? [genesis, ...blocks].slice(0, limit) : blocks;
  };
  return {
    readBlocks,
    /**
     * Reads the head of the chain; a new chain's head is genesis.
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
    /** Counts the blocks themselves, including genesis, instead of trusting the head. */
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
    /** Counts blocks against the quota of their validator's owner, within a transaction. */
    countBlocks: ({ db }: WriteTransaction, owner: string, added: number) =>
      countForOwner(db, blockQuota, owner, added),
    /** Lists blocks in order; ends a page before it gets too large. */
    async listBlocks(request: PageRequest): Promise<Page<Block>> {
      // List positions count from 1, block indexes from 0. Reads more than fits into a page, or the page
      // would look like the last.
      const rows = await readBlocks(request.after, request.limit + 1, 2 * maxPageBytes);
      return cutPage(rows, request, blockList, ({ index }) => index + 1, estimateBlockBytes);
    },
  };
}
