/** Rows and audit entries as tests write them. */
import type { NewAuditEntry } from "../../src/storage/audit-chain.ts";
import type { Store, WriteTransaction } from "../../src/storage/store.ts";
import type { Place } from "./on-both.ts";

/** An entry that says which one it is. */
function entry(n: number): NewAuditEntry {
  return { keyId: `key-${n}`, operation: "SIGN", user: "ada", outcome: "OK", details: `number=${n}` };
}

/** Writes so many entries in one transaction. */
export function writeEntries(store: Store, count: number): Promise<void> {
  return store.write(async ({ audit }) => {
    for (let n = 1; n <= count; n++) audit(entry(n));
  });
}

/** Writes a row that has a name of its own, and an entry that tells of it. */
export async function addRow({ db, audit }: WriteTransaction, name: string): Promise<void> {
  audit({ ...entry(1), details: name });
  await db.insertInto("list_counts").values({ list_name: name, row_count: 1 }).execute();
}

/** The names of the rows that addRow wrote, as they are in the database. */
export async function readRowNames(place: Place): Promise<unknown[]> {
  const rows = await place.query("select list_name from list_counts");
  return rows.map(({ list_name }) => list_name).sort();
}
