/** Key rings of Google's interface. Its keys are names in the key service that start with a ring's name. */
import { column, type ListedRow, type RecordOf } from "../../src/records/columns.ts";
import { createRecordTable } from "../../src/records/create-table.ts";
import { recordQuota } from "../../src/records/quota.ts";
import { openTable } from "../../src/records/record-table.ts";
import type { RecordTables, TableDeclaration } from "../../src/records/table-declaration.ts";
import type { ModuleDeps } from "../../src/services/service-module.ts";

const columns = {
  owner: column.text("owner"),
  name: column.text("ring_name"),
  createdAt: column.time("created_at_ms"),
};

export const ringTable: TableDeclaration<typeof columns> = {
  name: "google_key_rings",
  columns,
  key: ["owner", "name"],
  owner: "owner",
  quota: recordQuota("google_key_rings", "key rings"),
  describe: ({ name }) => `key ring ${name}`,
};

export type RingRecord = RecordOf<typeof columns>;

declare module "../../src/database/schema.ts" {
  interface Schema {
    google_key_rings: ListedRow<typeof columns>;
  }
}

export const googleTables: RecordTables = {
  records: [ringTable],
  tables: { google_key_rings: ["position"] },
  steps: {
    "0002-google-kms": (types) => [
      createRecordTable(types, ringTable),
      "create index google_key_rings_by_owner_position on google_key_rings (owner, position)",
    ],
  },
};

/** A store's key rings. */
export type RingStore = ReturnType<typeof createRingStore>;

export function createRingStore(store: ModuleDeps["store"]) {
  const rings = openTable(store, ringTable);
  return {
    ...rings,
    /** @throws RecordDamagedError */
    find: (owner: string, name: string): Promise<RingRecord | undefined> => rings.findIntact({ owner, name }),
    /** Finds a ring within a transaction. */
    findAnew: (db: Parameters<typeof rings.insert>[0]["db"], owner: string, name: string) =>
      rings.find({ owner, name }, { db }),
  };
}
