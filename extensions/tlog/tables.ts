import { sql } from "kysely";
import { column, type RowOf, type TaggedRow } from "../../src/records/columns.ts";
import { createRecordTable, createTable } from "../../src/records/create-table.ts";
import type { RecordTables, TableDeclaration } from "../../src/records/table-declaration.ts";
import type { ServiceSecret } from "../../src/secrets/service-secrets.ts";

/** Roots of full tiles. Leaf hashes are not stored; they are computed from the entries. */
const hashTable = {
  name: "tlog_hashes",
  columns: {
    log: column.text("log"),
    /** 1 or more: each hash covers 256^level leaves. */
    level: column.integer("level"),
    index: column.integer("hash_index"),
    hash: column.bytes("hash"),
    tag: column.text("record_tag"),
  },
  key: ["log", "level", "index"],
} as const;

/** A log's published checkpoints. */
const checkpointTable = {
  name: "tlog_checkpoints",
  columns: {
    log: column.text("log"),
    size: column.integer("tree_size"),
    root: column.bytes("root"),
    signedAtMs: column.integer("signed_at_ms"),
    /** The signed note, without witness cosignatures. */
    note: column.text("note"),
    tag: column.text("record_tag"),
  },
  key: ["log", "size"],
} as const;

/** Witness cosignatures. */
const cosignatureColumns = {
  log: column.text("log"),
  size: column.integer("tree_size"),
  witness: column.text("witness"),
  /** 32 bits. */
  keyId: column.integer("key_id"),
  /** Starts with the time in eight bytes. */
  signature: column.bytes("signature"),
};

export const cosignatureTable: TableDeclaration<typeof cosignatureColumns> = {
  name: "tlog_cosignatures",
  columns: cosignatureColumns,
  key: ["log", "size", "witness", "keyId"],
  orderedBy: "tree_size",
  describe: ({ log, size, witness }) => `cosignature by ${witness} of the log ${log} with ${size} entries`,
};

/** The entry up to which a verification found a log valid. */
const verifiedTable = {
  name: "tlog_verified",
  columns: {
    log: column.text("log"),
    sequence: column.integer("sequence"),
    entryHash: column.text("entry_hash"),
    root: column.bytes("root"),
    verifiedAtMs: column.integer("verified_at_ms"),
    tag: column.text("record_tag"),
  },
  key: ["log"],
} as const;

export type TlogHashesTable = RowOf<typeof hashTable.columns>;
export type TlogCheckpointsTable = RowOf<typeof checkpointTable.columns>;
export type TlogCosignaturesTable = TaggedRow<typeof cosignatureColumns>;
export type TlogVerifiedTable = RowOf<typeof verifiedTable.columns>;

/** Seeds of a log's keys: Ed25519 (RFC 8032, section 5.1.5) and ML-DSA-44 (FIPS 204, algorithm 1). */
export function listLogSeeds(log: string) {
  const seedOf = (kind: string): ServiceSecret => ({
    identity: `tlog/${log}/${kind}`,
    record: `${kind} key of the log ${log}`,
    bytes: 32,
  });
  const [ed25519, mlDsa44] = [seedOf("ed25519"), seedOf("ml-dsa-44")];
  const uses = sql`select 1 from tlog_checkpoints where log = ${log}`;
  return { ed25519, mlDsa44, secrets: [ed25519, mlDsa44], uses };
}

declare module "../../src/database/schema.ts" {
  interface Schema {
    tlog_hashes: TlogHashesTable;
    tlog_checkpoints: TlogCheckpointsTable;
    tlog_cosignatures: TlogCosignaturesTable;
    tlog_verified: TlogVerifiedTable;
  }
}

export const tlogTables: RecordTables = {
  records: [cosignatureTable],
  serviceSecrets: ["audit", "blockchain"].map(listLogSeeds),
  tables: {
    tlog_hashes: ["log", "level", "hash_index"],
    tlog_checkpoints: ["log", "tree_size"],
    tlog_cosignatures: ["log", "tree_size", "witness", "key_id"],
    tlog_verified: ["log"],
  },
  steps: {
    "0003-tlog": (types) => [
      createTable(types, hashTable),
      createTable(types, checkpointTable),
      createRecordTable(types, cosignatureTable),
    ],
    "0004-tlog": (types) => [createTable(types, verifiedTable)],
  },
};
