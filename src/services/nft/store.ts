/** What the token service keeps: tokens, and how each went from owner to owner. */
import { column, type ListedRow, type RecordOf, type TaggedRow } from "../../records/columns.ts";
import { changeCounts } from "../../records/list-counts.ts";
import { listSeenBy } from "../../records/ownership.ts";
import { sizeInJson } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable } from "../../records/record-table.ts";
import { intact, nameList, type TableDeclaration } from "../../records/table-declaration.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

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
  /** The address that has it now. */
  currentOwner: column.text("current_owner"),
  /** How many rows nft_transfers has of it. */
  transferCount: column.integer("transfer_count"),
  mintedAt: column.time("minted_at_ms"),
  /** The user who minted it. */
  minter: column.text("minter"),
};

/** A token, with its metadata. */
export type Token = RecordOf<typeof tokenColumns>;

const transferColumns = {
  tokenId: column.text("token_id"),
  /** Counts the token's transfers from 1. */
  index: column.integer("transfer_index"),
  fromAddress: column.text("from_address"),
  toAddress: column.text("to_address"),
  timestamp: column.time("transferred_at_ms"),
};

/** One change of a token's owner. */
export type Transfer = RecordOf<typeof transferColumns>;

declare module "../../database/schema.ts" {
  interface Schema {
    nft_tokens: ListedRow<typeof tokenColumns>;
    nft_transfers: TaggedRow<typeof transferColumns>;
  }
}

/** Counts the tokens of an owner. */
export const tokenQuota = recordQuota("nft_tokens", "tokens");
/** Counts the transfers of the tokens that a user minted. */
export const transferQuota = recordQuota("nft_transfers", "transfers");

const tokenTable: TableDeclaration<typeof tokenColumns> = {
  name: "nft_tokens",
  columns: tokenColumns,
  key: ["tokenId"],
  owner: "minter",
  filters: ["currentOwner"],
  quota: tokenQuota,
  describe: ({ tokenId }) => `token ${tokenId}`,
  // A list has its ID, its name and its owner.
  sizeOfListed: ({ token_id, name, current_owner }) => sizeInJson({ token_id, name, current_owner }),
};

const transferTable: TableDeclaration<typeof transferColumns> = {
  name: "nft_transfers",
  columns: transferColumns,
  key: ["tokenId", "index"],
  filters: ["tokenId"],
  orderedBy: "transfer_index",
  describe: ({ tokenId, index }) => `transfer ${index} of token ${tokenId}`,
};

/** Names the list of an address's tokens, or of all, for page tokens and counts. */
export function tokenList(currentOwner: string): string {
  return nameList(tokenTable, { currentOwner });
}

/** Names the list of a token's transfers, for page tokens. */
export function transferList(tokenId: string): string {
  return nameList(transferTable, { tokenId });
}

/** The tokens of the service. */
export type NftStore = ReturnType<typeof createNftStore>;

/** Makes the store of the service on the store of all. */
export function createNftStore(store: Store) {
  const tokens = openTable(store, tokenTable);
  const transfers = openTable(store, transferTable);
  return {
    ...tokens,
    listTransfers: transfers.list,
    /** Gives an intact token to another address, within a transaction. */
    async transfer(
      transaction: WriteTransaction,
      token: Token,
      toAddress: string,
      now: Date,
    ): Promise<Transfer> {
      const { tokenId, minter, currentOwner: fromAddress, transferCount } = token;
      await transaction.requireRoom(transferQuota, minter);
      const index = transferCount + 1;
      const transfer: Transfer = { tokenId, index, fromAddress, toAddress, timestamp: now };
      await transfers.insert(transaction, transfer);
      await changeCounts(transaction.db, [listSeenBy({ owner: minter }, transferQuota.list)], 1);
      await tokens.update(transaction, intact(token), { currentOwner: toAddress, transferCount: index });
      return transfer;
    },
  };
}
