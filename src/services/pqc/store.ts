/** What the token issuer keeps: the keys that sign tokens, their seeds sealed. */
import type { PublicKey } from "../../crypto/provider.ts";
import { readOptionalTime, readTime } from "../../storage/row-values.ts";
import type { IssuerKeysTable } from "../../storage/schema.ts";
import type { Store, WriteTransaction } from "../../storage/store.ts";

/** A key of the issuer, as it is kept. */
export interface IssuerKeyRecord {
  readonly keyId: string;
  /** The raw FIPS 204 public key, 1952 bytes. */
  readonly publicKey: Uint8Array;
  readonly createdAt: Date;
  /** When it stopped signing; undefined for the one that signs. */
  readonly retiredAt: Date | undefined;
}

/** A key to be kept. */
export interface NewIssuerKey {
  readonly keyId: string;
  readonly publicKey: PublicKey;
  readonly seed: Uint8Array;
}

/** The keys of the issuer. */
export interface IssuerStore {
  /** Lists keys that sign, or stopped at or after a time; the newest first. */
  listKeys(notRetiredBefore: Date): Promise<IssuerKeyRecord[]>;
  /** Keeps a key unless there is one that signs; of several callers at once, one wins. */
  addFirstKey(key: NewIssuerKey, now: Date): Promise<void>;
  /** Keeps a key that signs from now on, and erases the seeds of those before, which are retired. */
  replaceKey(key: NewIssuerKey, now: Date, retiredAt: Date): Promise<void>;
  /** Opens the 32-byte seed of a key; the caller wipes it. @throws SEAL_BROKEN (CryptoError) */
  openSeed(keyId: string): Promise<Uint8Array | undefined>;
}

/** Makes the issuer's store on the store of all. */
export function createIssuerStore(store: Store): IssuerStore {
  return {
    async listKeys(notRetiredBefore) {
      const rows = await store.reader
        .selectFrom("issuer_keys")
        .selectAll()
        .where((row) =>
          row.or([row("retired_at_ms", "is", null), row("retired_at_ms", ">=", notRetiredBefore.getTime())]),
        )
        // The one that signs first, whatever the clocks say that made them.
        .orderBy((row) => row.case().when("retired_at_ms", "is", null).then(0).else(1).end())
        .orderBy("created_at_ms", "desc")
        .execute();
      return rows.map(toRecord);
    },
    addFirstKey: (key, now) =>
      store.write(async (transaction) => {
        const { db } = transaction;
        const signing = await db
          .selectFrom("issuer_keys")
          .select("key_id")
          .where("retired_at_ms", "is", null)
          .executeTakeFirst();
        if (signing !== undefined) return;
        await insert(transaction, key, now);
      }),
    replaceKey: (key, now, retiredAt) =>
      store.write(async (transaction) => {
        const { db, eraseSecret } = transaction;
        const signing = await db
          .selectFrom("issuer_keys")
          .select("key_id")
          .where("retired_at_ms", "is", null)
          .execute();
        for (const { key_id } of signing) await eraseSecret(identityOf(key_id));
        await db
          .updateTable("issuer_keys")
          .set({ retired_at_ms: retiredAt.getTime() })
          .where((row) =>
            row.or([row("retired_at_ms", "is", null), row("retired_at_ms", ">", retiredAt.getTime())]),
          )
          .execute();
        await insert(transaction, key, now);
      }),
    openSeed: (keyId) => store.readSecret(identityOf(keyId)),
  };
}

async function insert(
  { db, putSecret }: WriteTransaction,
  { keyId, publicKey, seed }: NewIssuerKey,
  now: Date,
): Promise<void> {
  await putSecret(identityOf(keyId), seed);
  await db
    .insertInto("issuer_keys")
    .values({
      key_id: keyId,
      algorithm: publicKey.algorithm,
      public_key: publicKey.exportRaw(),
      created_at_ms: now.getTime(),
      retired_at_ms: null,
    })
    .execute();
}

function identityOf(keyId: string): string {
  return `issuer_keys/${keyId}/seed`;
}

function toRecord(row: IssuerKeysTable): IssuerKeyRecord {
  return {
    keyId: row.key_id,
    publicKey: row.public_key,
    createdAt: readTime(row.created_at_ms),
    retiredAt: readOptionalTime(row.retired_at_ms),
  };
}
