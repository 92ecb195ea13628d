/** Stores the roots of full tiles. Each row has a tag, because a wrong hash would lead to a wrong root. */
import type { Kysely } from "kysely";
import type { Schema } from "../../src/database/schema.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { hashBytes } from "../../src/merkle/hashes.ts";
import type { Store } from "../../src/store/store.ts";
import type { TlogHashesTable } from "./tables.ts";

/** A hash and its position. */
export interface StoredHash {
  readonly level: number;
  readonly index: number;
  readonly hash: Uint8Array;
}

export function createHashStore(store: Pick<Store, "reader" | "tagRecord" | "isTagged">, log: string) {
  const listFields = ({ level, index, hash }: StoredHash) => ["tlog_hashes", log, level, index, hash];
  return {
    /** Counts a level's hashes: one more than the last index. */
    async count(level: number, db: Store["reader"] = store.reader): Promise<number> {
      const { last } = await db
        .selectFrom("tlog_hashes")
        .select(({ fn }) => fn.max<number | null>("hash_index").as("last"))
        .where("log", "=", log)
        .where("level", "=", level)
        .executeTakeFirstOrThrow();
      return (last ?? -1) + 1;
    },
    /**
     * Reads hashes from a level. Returns fewer than the limit only at the end of the level.
     *
     * @throws RecordDamagedError if one was modified or is missing
     */
    async read(level: number, from: number, limit: number): Promise<Uint8Array[]> {
      const rows = await store.reader
        .selectFrom("tlog_hashes")
        .selectAll()
        .where("log", "=", log)
        .where("level", "=", level)
        .where("hash_index", ">=", from)
        .orderBy("hash_index")
        .limit(limit)
        .execute();
      return rows.map((row, i) => {
        const stored = { level, index: from + i, hash: row.hash };
        const isTrue = row.hash.length === hashBytes && store.isTagged(listFields(stored), row.record_tag);
        if (row.hash_index !== from + i || !isTrue) throw new RecordDamagedError(describeHash(log, stored));
        return row.hash;
      });
    },
    /** Adds hashes. Hashes that another program added in the meantime stay. */
    async insert(db: Kysely<Schema>, hashes: readonly StoredHash[]): Promise<void> {
      if (hashes.length === 0) return;
      const rows = hashes.map((stored): TlogHashesTable => {
        const { level, index, hash } = stored;
        return { log, level, hash_index: index, hash, record_tag: store.tagRecord(listFields(stored)) };
      });
      await db
        .insertInto("tlog_hashes")
        .values(rows)
        .onConflict((conflict) => conflict.columns(["log", "level", "hash_index"]).doNothing())
        .execute();
    },
  };
}

/** Describes a hash for error messages. */
export function describeHash(log: string, { level, index }: Omit<StoredHash, "hash">): string {
  return `hash ${index} of level ${level} of the log ${log}`;
}
