/** What the token issuer keeps: the keys that sign tokens, their seeds sealed. */
import type { PublicKey } from "../../crypto/provider.ts";
import { openSecret, type SealedSecret, sealSecret } from "../../crypto/sealing.ts";
import type { Database, IssuerKeysTable } from "../../storage/database.ts";

/** A key of the issuer, as it is kept. */
export interface IssuerKeyRecord {
  readonly keyId: string;
  /** The raw FIPS 204 public key, 1952 bytes. */
  readonly publicKey: Uint8Array;
  readonly createdAt: Date;
  /** When it stopped signing; undefined for the one that signs. */
  readonly retiredAt: Date | undefined;
  /** Opens the 32-byte seed; the caller wipes it. */
  openSeed(): Uint8Array;
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
}

/** Makes the store on a database. */
export function createIssuerStore(database: Database, masterKey: Uint8Array): IssuerStore {
  return {
    async listKeys(notRetiredBefore) {
      const rows = await database
        .selectFrom("issuer_keys")
        .selectAll()
        .where((row) =>
          row.or([row("retired_at_ms", "is", null), row("retired_at_ms", ">=", notRetiredBefore.getTime())]),
        )
        .orderBy("created_at_ms", "desc")
        .execute();
      return rows.map((row) => toRecord(row, masterKey));
    },
    async addFirstKey(key, now) {
      const sealed = sealSecret(masterKey, identityOf(key.keyId), key.seed);
      await database.transaction().execute(async (transaction) => {
        const signing = await transaction
          .selectFrom("issuer_keys")
          .select("key_id")
          .where("retired_at_ms", "is", null)
          .executeTakeFirst();
        if (signing !== undefined) return;
        await transaction
          .insertInto("issuer_keys")
          .values({
            key_id: key.keyId,
            algorithm: key.publicKey.algorithm,
            public_key: key.publicKey.exportRaw(),
            master_key_id: sealed.masterKeyId,
            wrapped_data_key: sealed.wrappedDataKey,
            sealed_seed: sealed.ciphertext,
            created_at_ms: now.getTime(),
            retired_at_ms: null,
          })
          .execute();
      });
    },
  };
}

function identityOf(keyId: string): string {
  return `issuer_keys/${keyId}/seed`;
}

function toRecord(row: IssuerKeysTable, masterKey: Uint8Array): IssuerKeyRecord {
  const sealed: SealedSecret = {
    masterKeyId: row.master_key_id,
    wrappedDataKey: row.wrapped_data_key,
    ciphertext: row.sealed_seed,
  };
  return {
    keyId: row.key_id,
    publicKey: row.public_key,
    createdAt: new Date(row.created_at_ms),
    retiredAt: row.retired_at_ms === null ? undefined : new Date(row.retired_at_ms),
    openSeed: () => openSecret(masterKey, identityOf(row.key_id), sealed),
  };
}
