import { sql } from "kysely";
import type { TableOwner } from "../../database/schema.ts";
import { column, type ListedRow } from "../../records/columns.ts";
import { sizeInJson } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import type { TableDeclaration } from "../../records/table-declaration.ts";
import type { KeyAlgorithm, KeyState, KeyUsage } from "./record.ts";

const columns = {
  keyId: column.text("key_id"),
  alias: column.text("alias"),
  algorithm: column.text<"algorithm", KeyAlgorithm>("algorithm"),
  usage: column.text<"key_usage", KeyUsage>("key_usage"),
  state: column.text<"key_state", KeyState>("key_state"),
  publicKey: column.bytes("public_key"),
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
};

/** Selects the entries that change the state of a key, with the condition of the index below. */
export const changes = sql<boolean>`outcome = 'OK' and operation in ('CREATE', 'ROTATE', 'DESTROY')`;

/** Counts the keys of an owner, including ROTATED and DESTROYED ones, whose records stay. */
export const keyQuota = recordQuota("kms_keys", "keys");

export const keyTable: TableDeclaration<typeof columns> = {
  name: "kms_keys",
  columns,
  key: ["keyId"],
  owner: "owner",
  filters: ["state", "algorithm"],
  quota: keyQuota,
  describe: ({ keyId }) => `key ${keyId}`,
  // A list leaves out public keys.
  sizeOfListed: ({ public_key: _, ...row }) => sizeInJson(row),
  // Selects the newest entry about its state in one statement with the record, so that both are of the same moment.
  alsoSelect: sql<string | null>`(
    select operation || ' ' || details from audit_entries
    where audit_entries.key_id = kms_keys.key_id and ${changes} order by sequence desc limit 1
  )`.as("last_change"),
};

declare module "../../database/schema.ts" {
  interface Schema {
    kms_keys: ListedRow<typeof columns>;
  }
}

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
      // Indexes the entries that change the state of a key; a search among all entries would be too slow.
      `create index audit_entries_of_states on audit_entries (key_id, sequence)
        where outcome = 'OK' and operation in ('CREATE', 'ROTATE', 'DESTROY')`,
    ],
  },
};
