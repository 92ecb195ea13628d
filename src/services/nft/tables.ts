import { column, type ListedRow, type TaggedRow } from "../../records/columns.ts";
import { createRecordTable } from "../../records/create-table.ts";
import { sizeInJson } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import type { RecordTables, TableDeclaration } from "../../records/table-declaration.ts";

const tokenColumns = {
  tokenId: column.text("token_id"),
  name: column.text("name"),
  description: column.text("description"),
  artworkUri: column.text("artwork_uri"),
  /** 64 lower-case hexadecimal digits. */
  metadataHash: column.text("metadata_hash"),
  creatorAddress: column.text("creator_address"),
  /** Raw ML-DSA-65, 1952 bytes. */
  creatorPublicKey: column.bytes("creator_public_key"),
  /** Raw ML-DSA-65 over the 32 bytes of the metadata hash. */
  creatorSignature: column.bytes("creator_signature"),
  /** Address of the current owner. */
  currentOwner: column.text("current_owner"),
  /** Number of the token's rows in nft_transfers. */
  transferCount: column.integer("transfer_count"),
  mintedAt: column.time("minted_at_ms"),
  /** User who minted the token. */
  minter: column.text("minter"),
};

const transferColumns = {
  tokenId: column.text("token_id"),
  /** Number of the transfer within its token, from 1. */
  index: column.integer("transfer_index"),
  fromAddress: column.text("from_address"),
  toAddress: column.text("to_address"),
  timestamp: column.time("transferred_at_ms"),
};

/** Quota for an owner's tokens. */
export const tokenQuota = recordQuota("nft_tokens", "tokens");

/** Quota for transfers of the tokens that a user minted. */
export const transferQuota = recordQuota("nft_transfers", "transfers");

export const tokenTable: TableDeclaration<typeof tokenColumns> = {
  name: "nft_tokens",
  columns: tokenColumns,
  key: ["tokenId"],
  owner: "minter",
  filters: ["currentOwner"],
  quota: tokenQuota,
  describe: ({ tokenId }) => `token ${tokenId}`,
  // A list shows only the token's ID, name and owner.
  sizeOfListed: ({ token_id, name, current_owner }) => sizeInJson({ token_id, name, current_owner }),
};

export const transferTable: TableDeclaration<typeof transferColumns> = {
  name: "nft_transfers",
  columns: transferColumns,
  key: ["tokenId", "index"],
  filters: ["tokenId"],
  orderedBy: "transfer_index",
  describe: ({ tokenId, index }) => `transfer ${index} of token ${tokenId}`,
};

declare module "../../database/schema.ts" {
  interface Schema {
    nft_tokens: ListedRow<typeof tokenColumns>;
    nft_transfers: TaggedRow<typeof transferColumns>;
  }
}

export const nftTables: RecordTables = {
  records: [tokenTable, transferTable],
  tables: { nft_tokens: ["position"], nft_transfers: ["token_id", "transfer_index"] },
  steps: {
    "0001-nft": (types) => [
      createRecordTable(types, tokenTable),
      "create index nft_tokens_by_current_owner_position on nft_tokens (current_owner, position)",
      "create index nft_tokens_by_minter_position on nft_tokens (minter, position)",
      createRecordTable(types, transferTable),
    ],
  },
};
