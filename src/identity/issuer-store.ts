/** What the token issuer keeps: the keys that sign tokens, their seeds sealed. */
import type { PublicKey } from "../crypto/provider.ts";
import {
  bytes,
  optionalTime,
  type RecordOf,
  type RowOf,
  type TagColumn,
  text,
  time,
  untagged,
} from "../records/columns.ts";
import { openTable, type TableDeclaration } from "../records/record-table.ts";
import type { Store, WriteTransaction } from "../store/store.ts";

const columns = {
  /** The RFC 7638 thumbprint of the public key. */
  keyId: text("key_id"),
  algorithm: untagged(text("algorithm")),
  /** The raw FIPS 204 public key, 1952 bytes. */
  publicKey: bytes("public_key"),
  createdAt: time("created_at_ms"),
  /** When it stopped signing; undefined for the one that signs. */
  retiredAt: optionalTime("retired_at_ms"),
};

/** A key of the issuer, as it is kept. */
export type IssuerKeyRecord = RecordOf<typeof columns>;

declare module "../database/schema.ts" {
  interface Schema {
    issuer_keys: RowOf<typeof columns> & TagColumn;
  }
}

const keyTable: TableDeclaration<typeof columns> = {
  name: "issuer_keys",
  columns,
  key: ["keyId"],
  orderedBy: "key_id",
  describe: ({ keyId }) => `key ${keyId} of the issuer`,
};

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
  /** Keeps a key unless there is one that signs; of several callers at once, one wins. */
  addFirstKey(key: NewIssuerKey, now: Date): Promise<void>;
  /** Keeps a key that signs from now on, and erases the seeds of those before, which are retired. */
  replaceKey(key: NewIssuerKey, now: Date, retiredAt: Date): Promise<void>;
  /** Opens the 32-byte seed of a key; the caller wipes it. @throws SEAL_BROKEN (CryptoError) */
  openSeed(keyId: string): Promise<Uint8Array | undefined>;
}

/** Makes the issuer's store on the store of all. */
export function createIssuerStore(store: Store): IssuerStore {
  const keys = openTable(store, keyTable);
  /** Lists the issuer's own keys that sign, or stopped at or after a time. */
  const listOwn = async (db: WriteTransaction["db"], notRetiredBefore: Date): Promise<IssuerKeyRecord[]> => {
    const rows = await db
      .selectFrom("issuer_keys")
      .selectAll()
      .where((row) =>
        row.or([row("retired_at_ms", "is", null), row("retired_at_ms", ">=", notRetiredBefore.getTime())]),
      )
      // The one that signs first, whatever the clocks say that made them.
      .orderBy((row) => row.case().when("retired_at_ms", "is", null).then(0).else(1).end())
      .orderBy("created_at_ms", "desc")
      .execute();
    const found = rows.map(keys.readRow);
    return found.filter(({ isIntact }) => isIntact).map(({ record }) => record);
  };
  const insert = async (
    transaction: WriteTransaction,
    { keyId, publicKey, seed }: NewIssuerKey,
    createdAt: Date,
  ): Promise<void> => {
    await transaction.putSecret(nameSecret(keyId), seed);
    const { algorithm } = publicKey;
    const record = { keyId, algorithm, publicKey: publicKey.exportRaw(), createdAt, retiredAt: undefined };
    await keys.insert(transaction, record);
  };
  return {
    listKeys: (notRetiredBefore) => listOwn(store.reader, notRetiredBefore),
    addFirstKey: (key, now) =>
      store.write(async (transaction) => {
        const known = await listOwn(transaction.db, now);
        if (!known.some(({ retiredAt }) => retiredAt === undefined)) await insert(transaction, key, now);
      }),
    replaceKey: (key, now, retiredAt) =>
      store.write(async (transaction) => {
        for (const record of await listOwn(transaction.db, retiredAt)) {
          await transaction.eraseSecret(nameSecret(record.keyId));
          await keys.update(transaction, { record, isIntact: true }, { retiredAt });
        }
        await insert(transaction, key, now);
      }),
    openSeed: (keyId) => store.readSecret(nameSecret(keyId)),
  };
}

function nameSecret(keyId: string): string {
  return `issuer_keys/${keyId}/seed`;
}
