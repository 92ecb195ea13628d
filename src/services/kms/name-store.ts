/** Stores key names. */
import { sql } from "kysely";
import { findDueRecords } from "../../records/due-records.ts";
import { openTable, type RecordStore } from "../../records/record-table.ts";
import type { Stored } from "../../records/table-declaration.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { indexLabels } from "./label-index.ts";
import type { KeyName, KeyRecord } from "./tables.ts";
import { nameTable } from "./tables.ts";

export function createNameStore(store: RecordStore) {
  const names = openTable(store, nameTable);
  return {
    ...names,
    async insert(transaction: WriteTransaction, name: KeyName): Promise<void> {
      await names.insert(transaction, name);
      await indexLabels(transaction.db, name, true);
    },
    async update(transaction: WriteTransaction, name: Stored<KeyName>, change: Partial<KeyName>) {
      const changed = await names.update(transaction, name, change);
      if (change.labels !== undefined) await indexLabels(transaction.db, changed, false);
      return changed;
    },
    /** @throws RecordDamagedError */
    find: (owner: string, name: string, transaction?: WriteTransaction): Promise<KeyName | undefined> =>
      names.findIntact({ owner, name }, transaction && { db: transaction.db }),
    /** Finds the names of several keys. Damaged names are omitted. */
    async findOf(records: readonly KeyRecord[]): Promise<(record: KeyRecord) => KeyName | undefined> {
      const named = records.filter(({ name }) => name !== undefined);
      // With the owners, the query uses the index on both columns.
      const [owners, wanted] = [listOf(named, "owner"), listOf(named, "name")];
      const where = sql<boolean>`owner in (${owners}) and key_name in (${wanted})`;
      const found = named.length === 0 ? [] : await names.listWhere(where, sql`position`, maxNames);
      const known = new Map(
        found.flatMap(({ record, isIntact }) => (isIntact ? [[keyOf(record), record]] : [])),
      );
      return ({ owner, name = "" }) => known.get(keyOf({ owner, name }));
    },
    /** Names whose rotation is due. */
    due: findDueRecords(names, "next_rotation_at_ms", sql`primary_key_id is not null`),
  };
}

/** Maximum number of names that the keys of one page can have, if each of their owners has all of them. */
const maxNames = 1_000_000;

function listOf(records: readonly KeyRecord[], property: "owner" | "name") {
  return sql.join([...new Set(records.map((record) => record[property]))]);
}

function keyOf({ owner, name }: Pick<KeyName, "owner" | "name">): string {
  return JSON.stringify([owner, name]);
}
