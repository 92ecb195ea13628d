import type { TableOwner } from "../../database/schema.ts";

/** The tables of validators, blocks, the end of the chain and peers: see store.ts, block-store.ts and peer-store.ts. */
export const blockchainTables: TableOwner = {
  tables: {
    blockchain_validators: ["position"],
    blockchain_blocks: ["block_index"],
    blockchain_head: ["id"],
    blockchain_peers: ["position"],
  },
  steps: {
    "0001-blockchain": ({ bytes, integer }) => [
      `create table blockchain_validators (
        position ${integer} not null primary key,
        address text not null unique,
        name text not null,
        public_key ${bytes} not null,
        owner text not null,
        created_at_ms ${integer} not null,
        record_tag text not null
      )`,
      `create table blockchain_blocks (
        block_index ${integer} not null primary key,
        prev_hash text not null,
        data ${bytes} not null,
        timestamp_ms ${integer} not null,
        block_hash text not null,
        signature ${bytes} not null,
        validator_address text not null
      )`,
      `create table blockchain_head (
        id ${integer} not null primary key,
        chain_length ${integer} not null,
        head_hash text not null,
        record_tag text not null
      )`,
      `create table blockchain_peers (
        position ${integer} not null primary key,
        address text not null unique,
        is_connected ${integer} not null,
        height ${integer},
        last_seen_at_ms ${integer}
      )`,
    ],
  },
};
