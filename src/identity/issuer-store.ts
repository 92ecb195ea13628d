/** What the token issuer keeps: the keys that sign tokens, their seeds sealed. */
import type { PublicKey } from "../crypto/provider.ts";
import { readOptionalTime, readTime } from "../database/row-values.ts";
import type { IssuerKeysTable } from "../database/schema.ts";
import type { Store, WriteTransaction } from "../store/store.ts";

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

/**
 * The keys of the issuer. A key that somebody else put into the database, or changed there, is none: whoever has a key
 * among them could make tokens for anybody.
 */
export interface IssuerStore {
  /** Lists keys that sign, or stopped at or after a time; the newest first. */
  listKeys(notRetiredBefore: Date): Promise<IssuerKeyRecord[]>;
  /** Lists keys that sign and have no tag: those of a store that is older than tags, and what somebody put in. */
  listUntagged(): Promise<IssuerKeyRecord[]>;
  /** Tags a key of which it is known that it is the issuer's own. */
  adoptKey(record: IssuerKeyRecord): Promise<void>;
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
      return readOwn(store, rows);
    },
    async listUntagged() {
      const rows = await store.reader
        .selectFrom("issuer_keys")
        .selectAll()
        .where("record_tag", "=", "")
        .where("retired_at_ms", "is", null)
        .execute();
      return rows.map(toRecord);
    },
    adoptKey: (record) =>
      store.write(async ({ db }) => {
        await db
          .updateTable("issuer_keys")
          .set({ record_tag: store.tagRecord(listTaggedFields(record)) })
          .where("key_id", "=", record.keyId)
          .where("record_tag", "=", "")
          .where("retired_at_ms", "is", null)
          .execute();
      }),
    addFirstKey: (key, now) =>
      store.write(async (transaction) => {
        const rows = await transaction.db
          .selectFrom("issuer_keys")
          .selectAll()
          .where("retired_at_ms", "is", null)
          .execute();
        if (readOwn(store, rows).length === 0) await insert(store, transaction, key, now);
      }),
    replaceKey: (key, now, retiredAt) =>
      store.write(async (transaction) => {
        const { db, eraseSecret } = transaction;
        const rows = await db
          .selectFrom("issuer_keys")
          .selectAll()
          .where((row) =>
            row.or([row("retired_at_ms", "is", null), row("retired_at_ms", ">", retiredAt.getTime())]),
          )
          .execute();
        for (const record of readOwn(store, rows)) {
          await eraseSecret(nameSecret(record.keyId));
          await db
            .updateTable("issuer_keys")
            .set({
              retired_at_ms: retiredAt.getTime(),
              record_tag: store.tagRecord(listTaggedFields({ ...record, retiredAt })),
            })
            .where("key_id", "=", record.keyId)
            .execute();
        }
        await insert(store, transaction, key, now);
      }),
    openSeed: (keyId) => store.readSecret(nameSecret(keyId)),
  };
}

async function insert(
  store: Store,
  { db, putSecret }: WriteTransaction,
  { keyId, publicKey, seed }: NewIssuerKey,
  now: Date,
): Promise<void> {
  const record = { keyId, publicKey: publicKey.exportRaw(), createdAt: now, retiredAt: undefined };
  await putSecret(nameSecret(keyId), seed);
  await db
    .insertInto("issuer_keys")
    .values({
      key_id: keyId,
      algorithm: publicKey.algorithm,
      public_key: record.publicKey,
      created_at_ms: now.getTime(),
      retired_at_ms: null,
      record_tag: store.tagRecord(listTaggedFields(record)),
    })
    .execute();
}

function nameSecret(keyId: string): string {
  return `issuer_keys/${keyId}/seed`;
}

/** Those that this issuer put in, as it put them in. */
function readOwn(store: Store, rows: readonly IssuerKeysTable[]): IssuerKeyRecord[] {
  return rows.filter((row) => store.isTagged(listTaggedFields(toRecord(row)), row.record_tag)).map(toRecord);
}

/** All that a record's tag binds; in this order for the life of a store. */
function listTaggedFields({ keyId, publicKey, createdAt, retiredAt }: IssuerKeyRecord) {
  return ["issuer_keys", keyId, publicKey, createdAt.getTime(), retiredAt?.getTime() ?? ""];
}

function toRecord(row: IssuerKeysTable): IssuerKeyRecord {
  return {
    keyId: row.key_id,
    publicKey: row.public_key,
    createdAt: readTime(row.created_at_ms),
    retiredAt: readOptionalTime(row.retired_at_ms),
  };
}
