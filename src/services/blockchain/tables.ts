import { column, type ListedRow, type RowOf, type TaggedRow } from "../../records/columns.ts";
import { createRecordTable, createTable } from "../../records/create-table.ts";
import { recordQuota } from "../../records/quota.ts";
import type { RecordTables, TableDeclaration } from "../../records/table-declaration.ts";

const validatorColumns = {
  address: column.text("address"),
  name: column.text("name"),
  /** Raw. */
  publicKey: column.bytes("public_key"),
  /** User who registered the validator. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
};

/** Quota for an owner's validators. */
export const validatorQuota = recordQuota("blockchain_validators", "validators");

/** Approximate size of a validator in JSON: its key, raw and as PEM, and its name. */
const validatorBytes = 7000;

export const validatorTable: TableDeclaration<typeof validatorColumns> = {
  name: "blockchain_validators",
  columns: validatorColumns,
  key: ["address"],
  owner: "owner",
  quota: validatorQuota,
  hasSecret: () => true,
  describe: ({ address }) => `validator ${address}`,
  sizeOfListed: () => validatorBytes,
};

/** Block rows have no tag: hashes and signatures protect them. */
export const blockColumns = {
  index: column.integer("block_index"),
  prevHash: column.text("prev_hash"),
  data: column.bytes("data"),
  timestamp: column.time("timestamp_ms"),
  blockHash: column.text("block_hash"),
  signature: column.bytes("signature"),
  validatorAddress: column.text("validator_address"),
};

const headColumns = {
  /** Number of blocks, including genesis. */
  length: column.integer("chain_length"),
  headHash: column.text("head_hash"),
};

export const headTable: TableDeclaration<typeof headColumns> = {
  name: "blockchain_head",
  columns: headColumns,
  key: [],
  orderedBy: "id",
  describe: () => "end of the chain",
};

/** Peers have no owner and no tag: each ConnectPeer call asks the peer again. */
export const peerColumns = {
  address: column.unique(column.text("address")),
  /** Whether the peer answered the last call. */
  isConnected: column.flag("is_connected"),
  height: column.optionalInteger("height"),
  lastSeenAt: column.optionalTime("last_seen_at_ms"),
};

declare module "../../database/schema.ts" {
  interface Schema {
    blockchain_validators: ListedRow<typeof validatorColumns>;
    blockchain_blocks: RowOf<typeof blockColumns>;
    /** A single row. */
    blockchain_head: TaggedRow<typeof headColumns> & { id: number };
    blockchain_peers: RowOf<typeof peerColumns> & { position: number };
  }
}

/**
 * Tables for validators, blocks, the chain head and peers: see store.ts, block-store.ts and peer-store.ts.
 */
export const blockchainTables: RecordTables = {
  records: [validatorTable],
  tables: {
    blockchain_validators: ["position"],
    blockchain_blocks: ["block_index"],
    blockchain_head: ["id"],
    blockchain_peers: ["position"],
  },
  steps: {
    "0001-blockchain": (types) => [
      createRecordTable(types, validatorTable),
      createTable(types, {
        name: "blockchain_blocks",
        columns: blockColumns,
        key: ["index"],
      }),
      createRecordTable(types, {
        ...headTable,
        columns: { id: column.integer("id"), ...headColumns },
        key: ["id"],
      }),
      createTable(types, {
        name: "blockchain_peers",
        columns: { position: column.integer("position"), ...peerColumns },
        key: ["position"],
      }),
    ],
  },
};
