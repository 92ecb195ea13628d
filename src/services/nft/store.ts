/** What the token service keeps: tokens, and how each went from owner to owner. */

import { readTime } from "../../database/row-values.ts";
import type { NftTokensTable, NftTransfersTable } from "../../database/schema.ts";
import { changeCounts, readCount } from "../../records/list-counts.ts";
import {
  countedLists,
  isSeenBy,
  listSeenBy,
  type Principal,
  systemPrincipal,
} from "../../records/ownership.ts";
import { cutPage, type Page, type PageRequest, sizeInJson } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { recordQuota } from "../../records/quota.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import type { Metadata } from "./metadata.ts";

/** A token. */
export interface Token {
  readonly tokenId: string;
  readonly metadata: Metadata;
  /** 64 lower-case hexadecimal digits. */
  readonly metadataHash: string;
  readonly creatorAddress: string;
  /** Raw ML-DSA-65, 1952 bytes. */
  readonly creatorPublicKey: Uint8Array;
  /** Raw ML-DSA-65 over the 32 bytes of the metadata hash. */
  readonly creatorSignature: Uint8Array;
  readonly currentOwner: string;
  readonly transferCount: number;
  /** The user who minted it; empty for one that was minted before tokens had one. */
  readonly minter: string;
  readonly mintedAt: Date;
}

/** A token as it was read. */
export interface StoredToken {
  readonly token: Token;
  /** False if somebody changed it behind our back. */
  readonly isIntact: boolean;
}

/** One change of a token's owner. */
export interface Transfer {
  readonly tokenId: string;
  /** Counts the token's transfers from 1. */
  readonly index: number;
  readonly fromAddress: string;
  readonly toAddress: string;
  readonly timestamp: Date;
}

/** A transfer as it was read. */
export interface StoredTransfer {
  readonly transfer: Transfer;
  readonly isIntact: boolean;
}

/** Names the list of an owner's tokens, or of all, for page tokens and counts. */
export function tokenList(owner: string): string {
  return owner === "" ? "nft_tokens" : `nft_tokens owner=${owner}`;
}

/** Names the list of a token's transfers, for page tokens. */
export function transferList(tokenId: string): string {
  return `nft_transfers tokenId=${tokenId}`;
}

/** Counts the tokens of an owner. */
export const tokenQuota = recordQuota("nft_tokens", "tokens");

/** Counts the transfers of the tokens that a user minted. */
export const transferQuota = recordQuota("nft_transfers", "transfers");

/** The tokens of the service. */
export interface NftStore {
  find(tokenId: string, principal: Principal): Promise<StoredToken | undefined>;
  /** @param owner only tokens of this address; all if it is empty */
  list(request: PageRequest, owner: string, principal: Principal): Promise<Page<StoredToken>>;
  count(owner: string, principal?: Principal): Promise<number>;
  listTransfers(request: PageRequest, tokenId: string): Promise<Page<StoredTransfer>>;
  /** Keeps a new token, within a transaction. */
  insert(transaction: WriteTransaction, token: Token): Promise<void>;
  /** Reads a token within a transaction. */
  findForChange(
    transaction: WriteTransaction,
    tokenId: string,
    principal: Principal,
  ): Promise<StoredToken | undefined>;
  /** Gives a token to another owner, within a transaction. */
  transfer(transaction: WriteTransaction, token: Token, toAddress: string, now: Date): Promise<Transfer>;
}

/** Makes the store of the service on the store of all. */
export function createNftStore(store: Store): NftStore {
  const read = async (
    db: WriteTransaction["db"],
    tokenId: string,
    principal: Principal,
  ): Promise<StoredToken | undefined> => {
    const row = await db
      .selectFrom("nft_tokens")
      .selectAll()
      .where("token_id", "=", tokenId)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const token = toToken(row);
    if (!isSeenBy(principal, { owner: token.minter })) return undefined;
    return { token, isIntact: store.isTagged(listTokenFields(token), row.record_tag) };
  };
  return {
    find: (tokenId, principal) => read(store.reader, tokenId, principal),
    findForChange: ({ db }, tokenId, principal) => read(db, tokenId, principal),
    async list(request, owner, principal) {
      let query = store.reader.selectFrom("nft_tokens").selectAll().where("position", ">", request.after);
      if (principal.owner !== undefined) query = query.where("minter", "=", principal.owner);
      if (owner !== "") query = query.where("current_owner", "=", owner);
      const rows = await query
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(
        rows,
        request,
        listSeenBy(principal, tokenList(owner)),
        ({ position }) => position,
        sizeOfListed,
      );
      const pack = (row: NftTokensTable): StoredToken => {
        const token = toToken(row);
        return { token, isIntact: store.isTagged(listTokenFields(token), row.record_tag) };
      };
      return { ...page, rows: page.rows.map(pack) };
    },
    count: (owner, principal = systemPrincipal) =>
      readCount(store.reader, listSeenBy(principal, tokenList(owner))),
    async listTransfers(request, tokenId) {
      const rows = await store.reader
        .selectFrom("nft_transfers")
        .selectAll()
        .where("token_id", "=", tokenId)
        .where("transfer_index", ">", request.after)
        .orderBy("transfer_index")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(rows, request, transferList(tokenId), (row) => row.transfer_index);
      const pack = (row: NftTransfersTable): StoredTransfer => {
        const transfer = toTransfer(row);
        return { transfer, isIntact: store.isTagged(listTransferFields(transfer), row.record_tag) };
      };
      return { ...page, rows: page.rows.map(pack) };
    },
    async insert({ db, requireRoom }, token) {
      await requireRoom(tokenQuota, token.minter);
      await db
        .insertInto("nft_tokens")
        .values({
          position: await nextPosition(db, "nft_tokens"),
          token_id: token.tokenId,
          name: token.metadata.name,
          description: token.metadata.description,
          artwork_uri: token.metadata.artworkUri,
          metadata_hash: token.metadataHash,
          creator_address: token.creatorAddress,
          creator_public_key: token.creatorPublicKey,
          creator_signature: token.creatorSignature,
          current_owner: token.currentOwner,
          transfer_count: token.transferCount,
          minter: token.minter,
          minted_at_ms: token.mintedAt.getTime(),
          record_tag: store.tagRecord(listTokenFields(token)),
        })
        .execute();
      await changeCounts(db, listCountedLists(token, "", token.currentOwner), 1);
    },
    async transfer({ db, requireRoom }, token, toAddress, now) {
      await requireRoom(transferQuota, token.minter);
      const index = token.transferCount + 1;
      const { tokenId, currentOwner: fromAddress } = token;
      const transfer: Transfer = { tokenId, index, fromAddress, toAddress, timestamp: now };
      await db
        .insertInto("nft_transfers")
        .values({
          token_id: tokenId,
          transfer_index: index,
          from_address: fromAddress,
          to_address: toAddress,
          transferred_at_ms: now.getTime(),
          record_tag: store.tagRecord(listTransferFields(transfer)),
        })
        .execute();
      const changed = { ...token, currentOwner: toAddress, transferCount: index };
      await db
        .updateTable("nft_tokens")
        .set({
          current_owner: toAddress,
          transfer_count: index,
          record_tag: store.tagRecord(listTokenFields(changed)),
        })
        .where("token_id", "=", tokenId)
        .execute();
      await changeCounts(db, [listSeenBy({ owner: token.minter }, transferQuota.list)], 1);
      await changeCounts(db, listCountedLists(token, fromAddress), -1);
      await changeCounts(db, listCountedLists(token, toAddress), 1);
      return transfer;
    },
  };
}

/** The lists of some addresses' tokens, or of all, as they are counted. */
function listCountedLists({ minter }: Token, ...owners: string[]): string[] {
  return countedLists(owners.map(tokenList), { owner: minter });
}

/** All that a token's tag binds; in this order for the life of a store. */
function listTokenFields(token: Token): (string | number | Uint8Array)[] {
  const { name, description, artworkUri } = token.metadata;
  return [
    "nft_tokens",
    token.tokenId,
    ...[name, description, artworkUri],
    token.metadataHash,
    token.creatorAddress,
    token.creatorPublicKey,
    token.creatorSignature,
    token.currentOwner,
    token.transferCount,
    token.mintedAt.getTime(),
    // Tags of tokens without one were made before there was any.
    ...(token.minter === "" ? [] : [token.minter]),
  ];
}

/** All that a transfer's tag binds; in this order for the life of a store. */
function listTransferFields({ tokenId, index, fromAddress, toAddress, timestamp }: Transfer) {
  return ["nft_transfers", tokenId, index, fromAddress, toAddress, timestamp.getTime()];
}

function toToken(row: NftTokensTable): Token {
  return {
    tokenId: row.token_id,
    metadata: { name: row.name, description: row.description, artworkUri: row.artwork_uri },
    metadataHash: row.metadata_hash,
    creatorAddress: row.creator_address,
    creatorPublicKey: row.creator_public_key,
    creatorSignature: row.creator_signature,
    currentOwner: row.current_owner,
    transferCount: row.transfer_count,
    minter: row.minter,
    mintedAt: readTime(row.minted_at_ms),
  };
}

function toTransfer(row: NftTransfersTable): Transfer {
  return {
    tokenId: row.token_id,
    index: row.transfer_index,
    fromAddress: row.from_address,
    toAddress: row.to_address,
    timestamp: readTime(row.transferred_at_ms),
  };
}

/** How large a token is in a list, in JSON, about: its ID, its name and its owner. */
function sizeOfListed({ token_id, name, current_owner }: NftTokensTable): number {
  return sizeInJson({ token_id, name, current_owner });
}
