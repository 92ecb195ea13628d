/** The tables of the key service in the database. */
import type { TableOwner } from "../../database/schema.ts";
import { createLabelIndex } from "./label-index.ts";

/** The tables of the key service: see store.ts. */
export const kmsTables: TableOwner = {
  tables: {
    kms_keys: ["position"],
    kms_names: ["position"],
    kms_grants: ["position"],
    kms_imports: ["position"],
    kms_labels: ["member", "owner", "key_id", "key_name"],
  },
  auditedTables: ["kms_keys"],
  steps: {
    "0001-kms": ({ bytes, integer }) => [
      `create table kms_keys (
        position ${integer} not null primary key,
        key_id text not null unique,
        alias text not null,
        algorithm text not null,
        key_usage text not null,
        key_state text not null,
        public_key ${bytes} not null,
        owner text not null,
        created_at_ms ${integer} not null,
        record_tag text not null
      )`,
      "create index kms_keys_by_owner_position on kms_keys (owner, position)",
      "create index kms_keys_by_key_state_position on kms_keys (key_state, position)",
      "create index kms_keys_by_algorithm_position on kms_keys (algorithm, position)",
      // Indexes the entries that change the state of a key; a search among all entries would be too slow.
      `create index audit_entries_of_states on audit_entries (key_id, sequence)
        where outcome = 'OK' and operation in ('CREATE', 'ROTATE', 'DESTROY')`,
    ],
    "0002-kms": ({ bytes, integer }) => [
      "alter table kms_keys add column key_name text",
      `alter table kms_keys add column key_version ${integer}`,
      `alter table kms_keys add column is_primary ${integer}`,
      "alter table kms_keys add column labels text not null default ''",
      `alter table kms_keys add column destroy_at_ms ${integer}`,
      `alter table kms_keys add column is_imported ${integer}`,
      "alter table kms_keys add column replaced_by text",
      `create unique index kms_keys_by_owner_name_version on kms_keys (owner, key_name, key_version)
        where key_name is not null`,
      `create index kms_keys_by_destroy_at on kms_keys (destroy_at_ms) where destroy_at_ms is not null`,
      "drop index audit_entries_of_states",
      // The entries that change the state of a key, with the condition of `changes` in tables.ts.
      `create index audit_entries_of_states on audit_entries (key_id, sequence)
        where outcome = 'OK' and operation in ('CREATE', 'IMPORT', 'ROTATE', 'DISABLE', 'ENABLE', 'SCHEDULE_DESTROY',
          'RESTORE', 'DESTROY')`,
      `create table kms_names (
        position ${integer} not null primary key,
        owner text not null,
        key_name text not null,
        algorithm text not null,
        labels text not null,
        rotation_period_s ${integer},
        next_rotation_at_ms ${integer},
        destroy_after_s ${integer},
        is_import_only ${integer} not null,
        versions ${integer} not null,
        primary_key_id text,
        signs_mu ${integer} not null,
        created_at_ms ${integer} not null,
        record_tag text not null,
        unique (owner, key_name)
      )`,
      `create index kms_names_by_next_rotation_at on kms_names (next_rotation_at_ms)
        where next_rotation_at_ms is not null`,
      `create table kms_grants (
        position ${integer} not null primary key,
        grant_id text not null unique,
        owner text not null,
        owner_name text not null,
        key_id text not null,
        key_name text not null,
        grantee text not null,
        grantee_name text not null,
        operations text not null,
        expires_at_ms ${integer},
        created_at_ms ${integer} not null,
        record_tag text not null
      )`,
      "create index kms_grants_by_owner_position on kms_grants (owner, position)",
      "create index kms_grants_by_grantee_position on kms_grants (grantee, position)",
      "create index kms_grants_by_grantee_key on kms_grants (grantee, key_id, owner, key_name)",
      "create index kms_grants_by_grantee_name on kms_grants (grantee, key_name, owner)",
      `create index kms_grants_by_expires_at on kms_grants (expires_at_ms) where expires_at_ms is not null`,
      `create table kms_imports (
        position ${integer} not null primary key,
        import_id text not null unique,
        owner text not null,
        method text not null,
        public_key ${bytes} not null,
        job_name text not null,
        expires_at_ms ${integer} not null,
        created_at_ms ${integer} not null,
        record_tag text not null
      )`,
      "create index kms_imports_by_owner_job_name on kms_imports (owner, job_name)",
      "create index kms_imports_by_expires_at on kms_imports (expires_at_ms)",
    ],
    "0004-kms": createLabelIndex,
    // The condition of `ofGrantEnds` in tables.ts.
    "0005-kms-grants": () => [
      `create index audit_entries_of_grant_ends on audit_entries (details)
        where outcome = 'OK' and operation = 'REVOKE_GRANT'`,
    ],
  },
};
