import type { SqlTypes, TableOwner } from "../database/schema.ts";

/** The tables of one log. */
export interface LogTables {
  readonly entries: "audit_entries" | "identity_entries";
  readonly head: "audit_head" | "identity_head";
  readonly checkpoints: "audit_checkpoints" | "identity_checkpoints";
  /** The member `purpose` of the text that a checkpoint signs, so that one of another log proves nothing here. */
  readonly purpose: string;
  /** The member of an entry's text that names whom or what the entry is about. */
  readonly subject: "keyId" | "subject";
}

/** The log of keys: what the key service does and refuses. */
export const keyLog: LogTables = {
  entries: "audit_entries",
  head: "audit_head",
  checkpoints: "audit_checkpoints",
  purpose: "audit checkpoint",
  subject: "keyId",
};

/** The log of identities: log-ins, users, clients, issuer keys and revocations. */
export const identityLog: LogTables = {
  entries: "identity_entries",
  head: "identity_head",
  checkpoints: "identity_checkpoints",
  purpose: "identity audit checkpoint",
  subject: "subject",
};

/** Events of keys, or of identities. The rows form a hash chain: see chain.ts. */
export interface AuditEntriesTable {
  /** Counts from 1 without gaps. */
  sequence: number;
  key_id: string;
  operation: string;
  user_name: string;
  occurred_at_ms: number;
  outcome: string;
  details: string;
  entry_hash: string;
  /** Binds entry_hash to a key that the database does not hold in the clear. */
  entry_tag: string;
  client_address: string;
  request_id: string;
  owner: string;
  key_name: string;
}

/** The end of the chain, in one row. */
export interface AuditHeadTable {
  id: number;
  sequence: number;
  entry_hash: string;
  head_tag: string;
}

/** Signed ends of the chain at earlier times. */
export interface AuditCheckpointsTable {
  sequence: number;
  entry_hash: string;
  signed_at_ms: number;
  signature: Uint8Array;
}

declare module "../database/schema.ts" {
  interface Schema {
    audit_entries: AuditEntriesTable;
    audit_head: AuditHeadTable;
    audit_checkpoints: AuditCheckpointsTable;
    identity_entries: AuditEntriesTable;
    identity_head: AuditHeadTable;
    identity_checkpoints: AuditCheckpointsTable;
  }
}

/** The tables of both logs. */
export const auditTables: TableOwner = {
  tables: {
    audit_entries: ["sequence"],
    audit_head: ["id"],
    audit_checkpoints: ["sequence"],
    identity_entries: ["sequence"],
    identity_head: ["id"],
    identity_checkpoints: ["sequence"],
  },
  steps: {
    "0001-audit": (types) => [
      `create table audit_entries (
        sequence ${types.integer} not null primary key,
        key_id text not null,
        operation text not null,
        user_name text not null,
        occurred_at_ms ${types.integer} not null,
        outcome text not null,
        details text not null,
        entry_hash text not null,
        entry_tag text not null
      )`,
      "create index audit_entries_by_key_id_sequence on audit_entries (key_id, sequence)",
      ...createEnds(keyLog, types),
    ],
    "0002-audit": () => [
      ...["client_address", "request_id", "owner", "key_name"].map(
        (column) => `alter table audit_entries add column ${column} text not null default ''`,
      ),
      "create index audit_entries_by_owner_sequence on audit_entries (owner, sequence)",
      `create index audit_entries_by_owner_key_name_sequence on audit_entries (owner, key_name, sequence)
        where key_name <> ''`,
    ],
    "0003-audit": (types) => [
      `create table identity_entries (
        sequence ${types.integer} not null primary key,
        key_id text not null,
        operation text not null,
        user_name text not null,
        occurred_at_ms ${types.integer} not null,
        outcome text not null,
        details text not null,
        entry_hash text not null,
        entry_tag text not null,
        client_address text not null,
        request_id text not null,
        owner text not null,
        key_name text not null
      )`,
      "create index identity_entries_by_key_id_sequence on identity_entries (key_id, sequence)",
      ...createEnds(identityLog, types),
    ],
  },
};

/** Creates the tables of the end of a log and of its checkpoints. */
function createEnds({ head, checkpoints }: LogTables, { bytes, integer }: SqlTypes): string[] {
  return [
    `create table ${head} (
        id ${integer} not null primary key,
        sequence ${integer} not null,
        entry_hash text not null,
        head_tag text not null
      )`,
    `create table ${checkpoints} (
        sequence ${integer} not null primary key,
        entry_hash text not null,
        signed_at_ms ${integer} not null,
        signature ${bytes} not null
      )`,
  ];
}
