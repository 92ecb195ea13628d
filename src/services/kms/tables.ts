import type { TableOwner } from "../../database/schema.ts";

/** The table of keys: see store.ts. */
export const kmsTables: TableOwner = {
  tables: { kms_keys: ["position"] },
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
      // The entries that say in which state a key is; among many others they could not be found in time.
      `create index audit_entries_of_states on audit_entries (key_id, sequence)
        where outcome = 'OK' and operation in ('CREATE', 'ROTATE', 'DESTROY')`,
    ],
  },
};
