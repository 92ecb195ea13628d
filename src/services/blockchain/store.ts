/** What the chain service keeps: validators, blocks, where the chain ends, and peers. */

import { readOptionalTime, readTime } from "../../database/row-values.ts";
import type {
  BlockchainBlocksTable,
  BlockchainPeersTable,
  BlockchainValidatorsTable,
} from "../../database/schema.ts";
import { RecordDamagedError } from "../../database/store-error.ts";
import { changeCounts, readCount } from "../../records/list-counts.ts";
import {
  countedLists,
  listSeenBy,
  type Principal,
  seenBy,
  systemPrincipal,
} from "../../records/ownership.ts";
import { cutPage, maxPageBytes, type Page, type PageRequest } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { recordQuota } from "../../records/quota.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import { type Block, genesis, validatorAlgorithm } from "./block.ts";

/** A validator without its secret key. */
export interface Validator {
  readonly address: string;
  readonly name: string;
  /** Raw. */
  readonly publicKey: Uint8Array;
  /** Who registered it. */
  readonly owner: string;
  readonly createdAt: Date;
}

/** A validator as it is stored. */
export interface ListedValidator extends Validator {
  /** Whether nobody changed it behind our back. */
  readonly isIntact: boolean;
}

/** Where the chain ends. */
export interface ChainHead {
  /** Blocks, genesis included. */
  readonly length: number;
  readonly headHash: string;
}

/** Another server of the chain. */
export interface Peer {
  readonly address: string;
  readonly isConnected: boolean;
  readonly height: number | undefined;
  readonly lastSeenAt: Date | undefined;
}

/** Names of lists, for page tokens and counts. */
export const blockList = "blockchain_blocks";
export const validatorList = "blockchain_validators";
export const peerList = "blockchain_peers";

/** Count the blocks of an owner's validators, the validators, and the peers that the owner was the first to connect. */
export const blockQuota = recordQuota(blockList, "blocks");
export const validatorQuota = recordQuota(validatorList, "validators");
export const peerQuota = recordQuota(peerList, "peers");

/** Names a validator's sealed secret key. */
export function nameSealedKey({ address, publicKey }: Validator): SealedKey {
  const identity = `blockchain_validators/${address}/secret-key`;
  return { record: `validator ${address}`, identity, algorithm: validatorAlgorithm, publicKey };
}

/** The chain of the service; what was changed behind our back throws RecordDamaged, but for blocks and in lists. */
export interface ChainStore {
  /** @param address the first validator of the principal if it is empty */
  findValidator(address: string, principal?: Principal): Promise<Validator | undefined>;
  insertValidator(transaction: WriteTransaction, validator: Validator, secret: Uint8Array): Promise<void>;
  listValidators(request: PageRequest): Promise<Page<ListedValidator>>;
  countValidators(): Promise<number>;

  /** The end of the chain; that of a new one is genesis. */
  readHead(): Promise<ChainHead>;
  /** The number of blocks, genesis included, as the blocks themselves say. */
  readLength(): Promise<number>;
  /** The end of the chain within a transaction. */
  readHeadForChange(transaction: WriteTransaction): Promise<ChainHead>;
  /** Appends blocks that follow the head, within a transaction. */
  append(transaction: WriteTransaction, head: ChainHead, blocks: readonly Block[]): Promise<void>;
  /** Counts blocks for the owner of their validator, within a transaction. */
  countBlocks(transaction: WriteTransaction, owner: string, added: number): Promise<void>;
  /** Blocks from an index on, in their order; the page is cut where it would be too large. */
  listBlocks(request: PageRequest): Promise<Page<Block>>;
  /**
   * Reads blocks from an index on, as they are stored: fewer than the limit where they are large, none only at the end.
   *
   * @param maxBytes of blocks to read; a first block that is larger is read all the same.
   */
  readBlocks(fromIndex: number, limit: number, maxBytes?: number): Promise<Block[]>;

  listPeers(request: PageRequest): Promise<Page<Peer>>;
  countPeers(): Promise<number>;
  /** Tells whether there is a peer of this address. */
  hasPeer(address: string): Promise<boolean>;
  /** Reads a peer within a transaction. */
  findPeer(transaction: WriteTransaction, address: string): Promise<Peer | undefined>;
  /** Keeps what is known of a peer, within a transaction. @param owner who asks; a new peer counts for them */
  savePeer(transaction: WriteTransaction, peer: Peer, owner: string): Promise<void>;
}

const headId = 1;

/** Bytes of blocks to have in memory for one who reads; a block may have 64 KiB, and there may be many who read. */
const maxReadBytes = 1024 * 1024;
/** How large a block is in JSON, about: its bytes in base64, its hashes, its time and the names of all. */
const estimateBytes = (dataBytes: number, signatureBytes: number): number =>
  ((dataBytes + signatureBytes) * 4) / 3 + 450;
export function estimateBlockBytes({ data, signature }: Block): number {
  return estimateBytes(data.length, signature.length);
}

/** How large a validator is in JSON, about: its key, raw and as PEM, and its name. */
const sizeOfValidator = 7000;

/** Makes the store of the service on the store of all. */
export function createChainStore(store: Store): ChainStore {
  const readHead = async (db: WriteTransaction["db"]): Promise<ChainHead> => {
    const row = await db
      .selectFrom("blockchain_head")
      .selectAll()
      .where("id", "=", headId)
      .executeTakeFirst();
    if (row === undefined) {
      const block = await db
        .selectFrom("blockchain_blocks")
        .select("block_index")
        .limit(1)
        .executeTakeFirst();
      if (block !== undefined) throw new RecordDamagedError("end of the chain");
      return { length: 1, headHash: genesis.blockHash };
    }
    const head = { length: row.chain_length, headHash: row.head_hash };
    store.requireTagged("end of the chain", listHeadFields(head), row.record_tag);
    return head;
  };
  /** How many blocks from an index on fit into so many bytes; at least 1. Reads only how long they are. */
  const countFitting = async (fromIndex: number, limit: number, maxBytes: number): Promise<number> => {
    const sizes = await store.reader
      .selectFrom("blockchain_blocks")
      .select(({ fn }) => [
        fn<number>("length", ["data"]).as("data_bytes"),
        fn<number>("length", ["signature"]).as("signature_bytes"),
      ])
      .where("block_index", ">=", fromIndex)
      .orderBy("block_index")
      .limit(limit)
      .execute();
    let bytes = 0;
    const tooMany = sizes.findIndex(({ data_bytes, signature_bytes }, i) => {
      bytes += estimateBytes(data_bytes, signature_bytes);
      return i > 0 && bytes > maxBytes;
    });
    return tooMany < 0 ? limit : tooMany;
  };
  const readBlocks = async (fromIndex: number, limit: number, maxBytes = maxReadBytes): Promise<Block[]> => {
    const firstStored = Math.max(fromIndex, 1);
    const stored = await store.reader
      .selectFrom("blockchain_blocks")
      .selectAll()
      .where("block_index", ">=", firstStored)
      .orderBy("block_index")
      .limit(await countFitting(firstStored, limit, maxBytes))
      .execute();
    const blocks = stored.map(toBlock);
    // Genesis is the same in every chain, so it is not stored.
    return fromIndex <= 0 ? [genesis, ...blocks].slice(0, limit) : blocks;
  };
  return {
    async findValidator(address, principal = systemPrincipal) {
      let query = store.reader.selectFrom("blockchain_validators").selectAll();
      if (principal.owner !== undefined) query = query.where("owner", "=", principal.owner);
      query = address === "" ? query.orderBy("position").limit(1) : query.where("address", "=", address);
      const row = await query.executeTakeFirst();
      const validator = row && toValidator(row);
      if (validator)
        store.requireTagged(`validator ${row.address}`, listValidatorFields(validator), row.record_tag);
      return seenBy(principal, validator);
    },
    async insertValidator({ db, putSecret, requireRoom }, validator, secret) {
      await requireRoom(validatorQuota, validator.owner);
      await db
        .insertInto("blockchain_validators")
        .values({
          position: await nextPosition(db, "blockchain_validators"),
          address: validator.address,
          name: validator.name,
          public_key: validator.publicKey,
          owner: validator.owner,
          created_at_ms: validator.createdAt.getTime(),
          record_tag: store.tagRecord(listValidatorFields(validator)),
        })
        .execute();
      await putSecret(nameSealedKey(validator).identity, secret);
      await changeCounts(db, countedLists([validatorList], validator), 1);
    },
    async listValidators(request) {
      const rows = await store.reader
        .selectFrom("blockchain_validators")
        .selectAll()
        .where("position", ">", request.after)
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(
        rows,
        request,
        validatorList,
        ({ position }) => position,
        () => sizeOfValidator,
      );
      const pack = (row: BlockchainValidatorsTable): ListedValidator => {
        const validator = toValidator(row);
        return { ...validator, isIntact: store.isTagged(listValidatorFields(validator), row.record_tag) };
      };
      return { ...page, rows: page.rows.map(pack) };
    },
    countValidators: () => readCount(store.reader, validatorList),

    readHead: () => readHead(store.reader),
    async readLength() {
      const { newest } = await store.reader
        .selectFrom("blockchain_blocks")
        .select(({ fn }) => fn.max<number | null>("block_index").as("newest"))
        .executeTakeFirstOrThrow();
      return (newest ?? 0) + 1;
    },
    readHeadForChange: ({ db }) => readHead(db),
    async append({ db }, head, blocks) {
      const last = blocks.at(-1);
      if (last === undefined) return;
      await db.insertInto("blockchain_blocks").values(blocks.map(toRow)).execute();
      const moved = { length: head.length + blocks.length, headHash: last.blockHash };
      const row = {
        chain_length: moved.length,
        head_hash: moved.headHash,
        record_tag: store.tagRecord(listHeadFields(moved)),
      };
      await db
        .insertInto("blockchain_head")
        .values({ id: headId, ...row })
        .onConflict((conflict) => conflict.column("id").doUpdateSet(row))
        .execute();
    },
    countBlocks: ({ db }, owner, added) => changeCounts(db, [listSeenBy({ owner }, blockList)], added),
    async listBlocks(request) {
      // Positions of a list count from 1, indexes from 0.
      // More than a page takes, or the page would look like the last one.
      const rows = await readBlocks(request.after, request.limit + 1, 2 * maxPageBytes);
      return cutPage(rows, request, blockList, ({ index }) => index + 1, estimateBlockBytes);
    },
    readBlocks,

    async listPeers(request) {
      const rows = await store.reader
        .selectFrom("blockchain_peers")
        .selectAll()
        .where("position", ">", request.after)
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(rows, request, peerList, ({ position }) => position);
      return { ...page, rows: page.rows.map(toPeer) };
    },
    countPeers: () => readCount(store.reader, peerList),
    hasPeer: async (address) => (await findPeer(store.reader, address)) !== undefined,
    findPeer: ({ db }, address) => findPeer(db, address),
    async savePeer({ db, requireRoom }, { address, isConnected, height, lastSeenAt }, owner) {
      const state = {
        is_connected: isConnected ? 1 : 0,
        height: height ?? null,
        last_seen_at_ms: lastSeenAt?.getTime() ?? null,
      };
      const { numUpdatedRows } = await db
        .updateTable("blockchain_peers")
        .set(state)
        .where("address", "=", address)
        .executeTakeFirstOrThrow();
      if (numUpdatedRows > 0n) return;
      await requireRoom(peerQuota, owner);
      const position = await nextPosition(db, "blockchain_peers");
      await db
        .insertInto("blockchain_peers")
        .values({ position, address, ...state })
        .execute();
      await changeCounts(db, countedLists([peerList], { owner }), 1);
    },
  };
}

async function findPeer(db: WriteTransaction["db"], address: string): Promise<Peer | undefined> {
  const row = await db
    .selectFrom("blockchain_peers")
    .selectAll()
    .where("address", "=", address)
    .executeTakeFirst();
  return row && toPeer(row);
}

/** All that a validator's tag binds; in this order for the life of a store. So is that of the head. */
function listValidatorFields({ address, name, publicKey, owner, createdAt }: Validator) {
  return ["blockchain_validators", address, name, publicKey, owner, createdAt.getTime()];
}

function listHeadFields({ length, headHash }: ChainHead) {
  return ["blockchain_head", length, headHash];
}

function toValidator(row: BlockchainValidatorsTable): Validator {
  return {
    address: row.address,
    name: row.name,
    publicKey: row.public_key,
    owner: row.owner,
    createdAt: readTime(row.created_at_ms),
  };
}

function toRow(block: Block): BlockchainBlocksTable {
  return {
    block_index: block.index,
    prev_hash: block.prevHash,
    data: block.data,
    timestamp_ms: block.timestamp.getTime(),
    block_hash: block.blockHash,
    signature: block.signature,
    validator_address: block.validatorAddress,
  };
}

function toBlock(row: BlockchainBlocksTable): Block {
  return {
    index: row.block_index,
    prevHash: row.prev_hash,
    data: row.data,
    timestamp: readTime(row.timestamp_ms),
    blockHash: row.block_hash,
    signature: row.signature,
    validatorAddress: row.validator_address,
  };
}

function toPeer(row: BlockchainPeersTable): Peer {
  return {
    address: row.address,
    isConnected: row.is_connected === 1,
    height: row.height ?? undefined,
    lastSeenAt: readOptionalTime(row.last_seen_at_ms),
  };
}
