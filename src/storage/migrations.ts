/** The steps from an empty database to the present schema. A step that was shipped never changes. */
import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Name to step; they run in the order of their names, each once. */
export const migrations: Readonly<Record<string, Migration>> = {
  "0001-issuer-keys": {
    async up(db: Kysely<unknown>): Promise<void> {
      await db.schema
        .createTable("issuer_keys")
        .addColumn("key_id", "text", (column) => column.primaryKey())
        .addColumn("algorithm", "text", (column) => column.notNull())
        .addColumn("public_key", "blob", (column) => column.notNull())
        .addColumn("master_key_id", "text", (column) => column.notNull())
        .addColumn("wrapped_data_key", "blob", (column) => column.notNull())
        .addColumn("sealed_seed", "blob", (column) => column.notNull())
        .addColumn("created_at_ms", "integer", (column) => column.notNull())
        .addColumn("retired_at_ms", "integer")
        .execute();
    },
  },
};
