import type { TableOwner } from "../../database/schema.ts";

/** The tables of tokens and of their transfers: see store.ts. */
export const nftTables: TableOwner = {
  tables: { nft_tokens: ["position"], nft_transfers: ["token_id", "transfer_index"] },
  steps: {
    "0001-nft": ({ bytes, integer }) => [
      `create table nft_tokens (
        position ${integer} not null primary key,
        token_id text not null unique,
        name text not null,
        description text not null,
        artwork_uri text not null,
        metadata_hash text not null,
        creator_address text not null,
        creator_public_key ${bytes} not null,
        creator_signature ${bytes} not null,
        current_owner text not null,
        transfer_count ${integer} not null,
        minted_at_ms ${integer} not null,
        minter text not null,
        record_tag text not null
      )`,
      "create index nft_tokens_by_current_owner_position on nft_tokens (current_owner, position)",
      "create index nft_tokens_by_minter_position on nft_tokens (minter, position)",
      `create table nft_transfers (
        token_id text not null,
        transfer_index ${integer} not null,
        from_address text not null,
        to_address text not null,
        transferred_at_ms ${integer} not null,
        record_tag text not null,
        primary key (token_id, transfer_index)
      )`,
    ],
  },
};
