import type { TableOwner } from "../database/schema.ts";

/** Roots of full tiles. The hashes of leaves are not here: they are computed from the entries. */
export interface TlogHashesTable {
  log: string;
  /** 1 or more: each hash covers 256^level leaves. */
  level: number;
  hash_index: number;
  hash: Uint8Array;
  record_tag: string;
}

/** Checkpoints that this log has published. */
export interface TlogCheckpointsTable {
  log: string;
  tree_size: number;
  root: Uint8Array;
  signed_at_ms: number;
  /** The signed note, without the cosignatures of witnesses. */
  note: string;
  record_tag: string;
}

/** Cosignatures of witnesses. */
export interface TlogCosignaturesTable {
  log: string;
  tree_size: number;
  witness: string;
  /** 32 bits. */
  key_id: number;
  /** With its time in the first eight bytes. */
  signature: Uint8Array;
  record_tag: string;
}

/** Up to which entry a verification found a log valid. */
export interface TlogVerifiedTable {
  log: string;
  sequence: number;
  entry_hash: string;
  root: Uint8Array;
  verified_at_ms: number;
  record_tag: string;
}

declare module "../database/schema.ts" {
  interface Schema {
    tlog_hashes: TlogHashesTable;
    tlog_checkpoints: TlogCheckpointsTable;
    tlog_cosignatures: TlogCosignaturesTable;
    tlog_verified: TlogVerifiedTable;
  }
}

/** The tables of verifiable logs. */
export const tlogTables: TableOwner = {
  tables: {
    tlog_hashes: ["log", "level", "hash_index"],
    tlog_checkpoints: ["log", "tree_size"],
    tlog_cosignatures: ["log", "tree_size", "witness", "key_id"],
    tlog_verified: ["log"],
  },
  steps: {
    "0003-tlog": ({ bytes, integer }) => [
      `create table tlog_hashes (
        log text not null,
        level ${integer} not null,
        hash_index ${integer} not null,
        hash ${bytes} not null,
        record_tag text not null,
        primary key (log, level, hash_index)
      )`,
      `create table tlog_checkpoints (
        log text not null,
        tree_size ${integer} not null,
        root ${bytes} not null,
        signed_at_ms ${integer} not null,
        note text not null,
        record_tag text not null,
        primary key (log, tree_size)
      )`,
      `create table tlog_cosignatures (
        log text not null,
        tree_size ${integer} not null,
        witness text not null,
        key_id ${integer} not null,
        signature ${bytes} not null,
        record_tag text not null,
        primary key (log, tree_size, witness, key_id)
      )`,
    ],
    "0004-tlog": ({ bytes, integer }) => [
      `create table tlog_verified (
        log text not null primary key,
        sequence ${integer} not null,
        entry_hash text not null,
        root ${bytes} not null,
        verified_at_ms ${integer} not null,
        record_tag text not null
      )`,
    ],
  },
};
