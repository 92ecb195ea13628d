/** Database tables of the key service. */
import { addColumns, createRecordTable } from "../../records/create-table.ts";
import type { RecordTables } from "../../records/table-declaration.ts";
import { createLabelIndex } from "./label-index.ts";
import { grantTable, importTable, keyTable, nameTable } from "./tables.ts";

/** The original columns of keys; later steps added the others. */
const { name, version, isPrimary, labels, destroyAt, isImported, replacedBy, draft, ...firstColumns } =
  keyTable.columns;
/** The last column of names is their creation time. */
const { createdAt, ...nameColumns } = nameTable.columns;

/** Tables of the key service: see store.ts. */
export const kmsTables: RecordTables = {
  records: [nameTable, grantTable, importTable],
  tables: {
    kms_keys: ["position"],
    kms_names: ["position"],
    kms_grants: ["position"],
    kms_imports: ["position"],
    kms_labels: ["member", "owner", "key_id", "key_name"],
  },
  auditedTables: ["kms_keys"],
  steps: {
    "0001-kms": (types) => [
      createRecordTable(types, { name: "kms_keys", columns: firstColumns, key: ["keyId"] }),
      "create index kms_keys_by_owner_position on kms_keys (owner, position)",
      "create index kms_keys_by_key_state_position on kms_keys (key_state, position)",
      "create index kms_keys_by_algorithm_position on kms_keys (algorithm, position)",
      // Indexes the entries that change a key's state; a search among all entries would be too slow.
      `create index audit_entries_of_states on audit_entries (key_id, sequence)
        where outcome = 'OK' and operation in ('CREATE', 'ROTATE', 'DESTROY')`,
    ],
    "0002-kms": (types) => [
      ...addColumns(types, "kms_keys", [name, version, isPrimary, labels, destroyAt, isImported, replacedBy]),
      `create unique index kms_keys_by_owner_name_version on kms_keys (owner, key_name, key_version)
        where key_name is not null`,
      `create index kms_keys_by_destroy_at on kms_keys (destroy_at_ms) where destroy_at_ms is not null`,
      "drop index audit_entries_of_states",
      // Entries that change a key's state, with the condition of `changes` in tables.ts.
      `create index audit_entries_of_states on audit_entries (key_id, sequence)
        where outcome = 'OK' and operation in ('CREATE', 'IMPORT', 'ROTATE', 'DISABLE', 'ENABLE', 'SCHEDULE_DESTROY',
          'RESTORE', 'DESTROY')`,
      createRecordTable(types, { ...nameTable, columns: { ...nameColumns, createdAt } }),
      `create index kms_names_by_next_rotation_at on kms_names (next_rotation_at_ms)
        where next_rotation_at_ms is not null`,
      createRecordTable(types, grantTable),
      "create index kms_grants_by_owner_position on kms_grants (owner, position)",
      "create index kms_grants_by_grantee_position on kms_grants (grantee, position)",
      "create index kms_grants_by_grantee_key on kms_grants (grantee, key_id, owner, key_name)",
      "create index kms_grants_by_grantee_name on kms_grants (grantee, key_name, owner)",
      `create index kms_grants_by_expires_at on kms_grants (expires_at_ms) where expires_at_ms is not null`,
      createRecordTable(types, importTable),
      "create index kms_imports_by_owner_job_name on kms_imports (owner, job_name)",
      "create index kms_imports_by_expires_at on kms_imports (expires_at_ms)",
    ],
    "0004-kms": createLabelIndex,
    // The condition of `ofGrantEnds` in tables.ts.
    "0005-kms-grants": () => [
      `create index audit_entries_of_grant_ends on audit_entries (details)
        where outcome = 'OK' and operation = 'REVOKE_GRANT'`,
    ],
    // For findOtherUsage in store.ts. Keys that sign are left out: PostgreSQL indexes at most 2,704 bytes.
    "0007-kms": () => [
      "create index kms_keys_by_public_key on kms_keys (public_key) where key_usage in ('KEM', 'ENCRYPT')",
    ],
    // For components.ts: the start of an ML-DSA key, and the end of a classical one.
    "0008-kms": (types) => [
      ...addColumns(types, "kms_keys", [draft]),
      "create index kms_keys_by_first_bytes on kms_keys (substr(public_key, 1, 32)) where key_usage = 'SIGN'",
      `create index kms_keys_by_last_bytes on kms_keys (substr(public_key, length(public_key) - 31))
        where key_usage = 'SIGN'`,
    ],
    // For `endedGrant` in tables.ts: the ID of a grant, without the details that follow.
    "0012-kms-grants": () => [
      "drop index audit_entries_of_grant_ends",
      `create index audit_entries_of_ended_grants on audit_entries (substr(details, 1, 50))
        where outcome = 'OK' and operation = 'REVOKE_GRANT'`,
    ],
  },
};
