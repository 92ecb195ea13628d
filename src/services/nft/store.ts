/** What the token service keeps: tokens, and how each went from owner to owner. */
import {
  bytes,
  integer,
  type PositionColumn,
  type RecordOf,
  type RowOf,
  type TagColumn,
  text,
  time,
} from "../../records/columns.ts";
import { changeCounts } from "../../records/list-counts.ts";
import { isSeenBy, listSeenBy, type Principal } from "../../records/ownership.ts";
import { type Page, type PageRequest, sizeInJson } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import { nameList, openTable, type Stored, type TableDeclaration } from "../../records/record-table.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

const tokenColumns = {
  tokenId: text("token_id"),
  name: text("name"),
  description: text("description"),
  artworkUri: text("artwork_uri"),
  /** 64 lower-case hexadecimal digits. */
  metadataHash: text("metadata_hash"),
  creatorAddress: text("creator_address"),
  /** Raw ML-DSA-65, 1952 bytes. */
  creatorPublicKey: bytes("creator_public_key"),
  /** Raw ML-DSA-65 over the 32 bytes of the metadata hash. */
  creatorSignature: bytes("creator_signature"),
  /** The address that has it now. */
  currentOwner: text("current_owner"),
  /** How many rows nft_transfers has of it. */
  transferCount: integer("transfer_count"),
  mintedAt: time("minted_at_ms"),
  /** The user who minted it. */
  minter: text("minter"),
};

/** A token, with its metadata. */
export type Token = RecordOf<typeof tokenColumns>;

const transferColumns = {
  tokenId: text("token_id"),
  /** Counts the token's transfers from 1. */
  index: integer("transfer_index"),
  fromAddress: text("from_address"),
  toAddress: text("to_address"),
  timestamp: time("transferred_at_ms"),
};

/** One change of a token's owner. */
export type Transfer = RecordOf<typeof transferColumns>;

declare module "../../database/schema.ts" {
  interface Schema {
    nft_tokens: RowOf<typeof tokenColumns> & PositionColumn & TagColumn;
    nft_transfers: RowOf<typeof transferColumns> & TagColumn;
  }
}

/** Names the list of an address's tokens, or of all, for page tokens and counts. */
export function tokenList(currentOwner: string): string {
  return nameList("nft_tokens", { currentOwner });
}

/** Names the list of a token's transfers, for page tokens. */
export function transferList(tokenId: string): string {
  return nameList("nft_transfers", { tokenId });
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
  orderedBy: "transfer_index",
  describe: ({ tokenId, index }) => `transfer ${index} of token ${tokenId}`,
};

/** The tokens of the service. */
export interface NftStore {
  /** @param db of a transaction; else the reader */
  find(
    tokenId: string,
    principal: Principal,
    db?: WriteTransaction["db"],
  ): Promise<Stored<Token> | undefined>;
  /** @param currentOwner only tokens of this address; all if it is empty */
  list(request: PageRequest, currentOwner: string, principal: Principal): Promise<Page<Stored<Token>>>;
  count(currentOwner: string, principal?: Principal): Promise<number>;
  listTransfers(request: PageRequest, tokenId: string): Promise<Page<Stored<Transfer>>>;
  /** Keeps a new token, within a transaction. */
  insert(transaction: WriteTransaction, token: Token): Promise<void>;
  /** Gives an intact token to another owner, within a transaction. */
  transfer(transaction: WriteTransaction, token: Token, toAddress: string, now: Date): Promise<Transfer>;
}

/** Makes the store of the service on the store of all. */
export function createNftStore(store: Store): NftStore {
  const tokens = openTable(store, tokenTable);
  const transfers = openTable(store, transferTable);
  return {
    async find(tokenId, principal, db) {
      const found = await tokens.find({ tokenId }, db);
      return found && isSeenBy(principal, { owner: found.record.minter }) ? found : undefined;
    },
    list: (request, currentOwner, principal) => tokens.list(request, { currentOwner }, principal),
    count: (currentOwner, principal) => tokens.count({ currentOwner }, principal),
    listTransfers: (request, tokenId) => transfers.list(request, { tokenId }),
    insert: tokens.insert,
    async transfer(transaction, token, toAddress, now) {
      await transaction.requireRoom(transferQuota, token.minter);
      const index = token.transferCount + 1;
      const { tokenId, currentOwner: fromAddress } = token;
      const transfer: Transfer = { tokenId, index, fromAddress, toAddress, timestamp: now };
      await transfers.insert(transaction, transfer);
      await changeCounts(transaction.db, [listSeenBy({ owner: token.minter }, transferQuota.list)], 1);
      const stored = { record: token, isIntact: true };
      await tokens.update(transaction, stored, { currentOwner: toAddress, transferCount: index });
      return transfer;
    },
  };
}
