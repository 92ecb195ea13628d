/** A long audit log, written about as fast as the store accepts entries. */
import type { Store } from "../../src/store/store.ts";
import { writeEntries } from "./entries.ts";

/** Entries per transaction. */
const perTransaction = 5000;

/** Writes this many entries. */
export async function writeLongLog(store: Store, count: number): Promise<void> {
  for (let left = count; left > 0; left -= perTransaction)
    await writeEntries(store, Math.min(left, perTransaction));
}
