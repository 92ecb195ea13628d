import type { TableOwner } from "../database/schema.ts";

/** Events of keys. The rows form a hash chain: see chain.ts. */
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
  }
}

/** The tables of the audit log. */
export const auditTables: TableOwner = {
  tables: { audit_entries: ["sequence"], audit_head: ["id"], audit_checkpoints: ["sequence"] },
  steps: {
    "0001-audit": ({ bytes, integer }) => [
      `create table audit_entries (
        sequence ${integer} not null primary key,
        key_id text not null,
        operation text not null,
        user_name text not null,
        occurred_at_ms ${integer} not null,
        outcome text not null,
        details text not null,
        entry_hash text not null,
        entry_tag text not null
      )`,
      "create index audit_entries_by_key_id_sequence on audit_entries (key_id, sequence)",
      `create table audit_head (
        id ${integer} not null primary key,
        sequence ${integer} not null,
        entry_hash text not null,
        head_tag text not null
      )`,
      `create table audit_checkpoints (
        sequence ${integer} not null primary key,
        entry_hash text not null,
        signed_at_ms ${integer} not null,
        signature ${bytes} not null
      )`,
    ],
    "0002-audit": () => [
      ...["client_address", "request_id", "owner", "key_name"].map(
        (column) => `alter table audit_entries add column ${column} text not null default ''`,
      ),
      "create index audit_entries_by_owner_sequence on audit_entries (owner, sequence)",
      `create index audit_entries_by_owner_key_name_sequence on audit_entries (owner, key_name, sequence)
        where key_name <> ''`,
    ],
  },
};
