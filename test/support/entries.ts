/** Writes and reads rows, audit entries and secrets in tests. */
import type { NewAuditEntry } from "../../src/audit/chain.ts";
import type { Store } from "../../src/store/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import type { Place } from "./on-both.ts";

/** A numbered entry. */
function entry(n: number, user = "ada"): NewAuditEntry {
  return { keyId: `key-${n}`, operation: "SIGN", user, outcome: "OK", details: `bytes=${n}` };
}

/** Writes this many entries in one transaction; each is named after the user and its position. */
export function writeEntries(store: Store, count: number, user?: string): Promise<void> {
  return store.write(async ({ audit }) => {
    for (let n = 1; n <= count; n++) audit(entry(n, user));
  });
}

/** Writes a row with a unique name, and an entry that records it. */
export async function addRow({ db, audit }: WriteTransaction, name: string): Promise<void> {
  audit({ ...entry(1), details: name });
  await db.insertInto("list_counts").values({ list_name: name, row_count: 1 }).execute();
}

/** The names of the rows of list_counts, read directly from the database. */
export async function readRowNames({ query }: Place): Promise<string[]> {
  // Idempotency keys are counted there, too.
  const rows = await query(
    "select list_name from list_counts where list_name not like 'idempotent_answers %'",
  );
  return rows.map(({ list_name }) => String(list_name)).sort();
}

/** Writes secrets, each with its identity, in one transaction. */
export async function putSecrets(
  store: Store,
  secrets: Iterable<readonly [identity: string, secret: string]>,
): Promise<void> {
  await store.write(async ({ putSecret }) => {
    for (const [identity, secret] of secrets) await putSecret(identity, Buffer.from(secret));
  });
}

/** The secret of an identity as text; undefined if it does not exist. */
export async function readSecretText(store: Store, identity: string): Promise<string | undefined> {
  const secret = await store.readSecret(identity);
  return secret && Buffer.from(secret).toString();
}
