/** Where a log's leaves come from: records that the store contains anyway. */
import { RecordDamagedError } from "../../src/database/store-error.ts";
import type { Store } from "../../src/store/store.ts";

/** Leaf data, 32 bytes each, by index from 0. */
export interface LeafSource {
  /** The log's name. */
  readonly log: string;
  /** A new log's leaves, the same in every store. */
  readonly firstLeaves: number;
  /**
   * Counts the leaves.
   *
   * @throws StoreFailureError; RecordDamagedError if the end of the records was modified
   */
  readSize(): Promise<number>;
  /** Reads up to `limit` stored leaves without checking them. Returns fewer at the end of the log. */
  readStored(from: number, limit: number): Promise<Uint8Array[]>;
  /**
   * Reads leaves and checks that the server wrote their records. Returns at least one leaf, and fewer than
   * the limit if the records are large.
   *
   * @throws RecordDamagedError if one was modified or is missing
   */
  readTrue(from: number, limit: number): Promise<Uint8Array[]>;
}

/** The audit log: leaf i is the entryHash of the entry with sequence i + 1. */
export function createAuditSource(store: Store): LeafSource {
  return {
    log: "audit",
    firstLeaves: 0,
    readSize: async () => (await store.readAuditEnd()).sequence,
    async readStored(from, limit) {
      const rows = await store.reader
        .selectFrom("audit_entries")
        .select(["sequence", "entry_hash"])
        .where("sequence", ">", from)
        .orderBy("sequence")
        .limit(limit)
        .execute();
      return rows.map(({ sequence, entry_hash }, i) => {
        if (sequence !== from + i + 1) throw new RecordDamagedError(`audit entry ${from + i + 1}`);
        return decodeHash(entry_hash, `audit entry ${sequence}`);
      });
    },
    async readTrue(from, limit) {
      const hashes = await store.readTrueHashes(from, limit);
      if (hashes.length === 0) throw new RecordDamagedError(`audit entry ${from + 1}`);
      return hashes.map((entryHash, i) => decodeHash(entryHash, `audit entry ${from + i + 1}`));
    },
  };
}

/**
 * Decodes a stored hash of 64 hexadecimal digits.
 *
 * @throws RecordDamagedError with the record's name
 */
export function decodeHash(digits: string, record: string): Uint8Array {
  if (!/^[0-9a-f]{64}$/.test(digits)) throw new RecordDamagedError(record);
  return Buffer.from(digits, "hex");
}
