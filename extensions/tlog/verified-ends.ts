/** Remembers up to which entry a verification found a log valid, so that the next one can continue there. */
import { readTime } from "../../src/database/row-values.ts";
import type { Store } from "../../src/store/store.ts";
import type { TlogVerifiedTable } from "./tables.ts";

/** The last entry that a verification found valid: a multiple of 256, where a tile ends. */
export interface VerifiedEnd {
  readonly sequence: number;
  /** That entry's hash. */
  readonly entryHash: string;
  /** Root of the tree over the entries. */
  readonly root: Uint8Array;
  readonly verifiedAt: Date;
}

export function createVerifiedEnds(store: Pick<Store, "reader" | "write" | "tagRecord" | "isTagged">) {
  const listFields = (row: Omit<TlogVerifiedTable, "record_tag">) => [
    "tlog_verified",
    row.log,
    row.sequence,
    row.entry_hash,
    row.root,
    row.verified_at_ms,
  ];
  return {
    /** @returns undefined if none exists or it was modified outside the server, so that it proves nothing */
    async find(log: string): Promise<VerifiedEnd | undefined> {
      const row = await store.reader
        .selectFrom("tlog_verified")
        .selectAll()
        .where("log", "=", log)
        .executeTakeFirst();
      if (row === undefined || !store.isTagged(listFields(row), row.record_tag)) return undefined;
      const { sequence, entry_hash: entryHash, root, verified_at_ms } = row;
      return { sequence, entryHash, root, verifiedAt: readTime(verified_at_ms) };
    },
    async put(log: string, { sequence, entryHash, root, verifiedAt }: VerifiedEnd): Promise<void> {
      const row = { log, sequence, entry_hash: entryHash, root, verified_at_ms: verifiedAt.getTime() };
      await store.write(async ({ db }) => {
        await db.deleteFrom("tlog_verified").where("log", "=", log).execute();
        await db
          .insertInto("tlog_verified")
          .values({ ...row, record_tag: store.tagRecord(listFields(row)) })
          .execute();
      });
    },
  };
}
