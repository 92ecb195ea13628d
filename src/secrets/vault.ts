/** Keeps secrets sealed in the database, so that only the master key opens them. */
import type { Kysely } from "kysely";
import { wipe } from "../crypto/bytes.ts";
import { CryptoError } from "../crypto/crypto-error.ts";
import { openSecret, type SealedSecret, sealSecret } from "../crypto/sealing.ts";
import type { Schema } from "../database/schema.ts";
import { StoreFailureError } from "../database/store-error.ts";
import type { Keyring } from "./master-key.ts";
import type { SealedSecretsTable } from "./tables.ts";

/**
 * Identity of the secret from which the store derives its own keys. Its row shows which master key is in use.
 */
export const rootIdentity = "store/root-key";

/** Sealed secrets by record identity, such as "issuer_keys/<key_id>/seed". */
export interface Vault {
  /**
   * Opens a secret. The caller wipes it.
   *
   * @returns undefined if the secret does not exist
   * @throws SEAL_BROKEN (CryptoError) if it was changed, or belongs to a different record or master key;
   *   LOCKED (StoreFailureError) if it is sealed with the store's master key and this program does not have
   *   that key
   */
  read(db: Kysely<Schema>, identity: string): Promise<Uint8Array | undefined>;
  /**
   * Opens several secrets with one read. The caller wipes them.
   *
   * @returns each existing secret; undefined for a secret that `read` would not open
   */
  readSome(
    db: Kysely<Schema>,
    identities: readonly string[],
  ): Promise<ReadonlyMap<string, Uint8Array | undefined>>;
  /** Seals and stores a secret within a transaction. The caller wipes it. */
  put(db: Kysely<Schema>, identity: string, secret: Uint8Array): Promise<void>;
  /** Erases a secret within a transaction. */
  erase(db: Kysely<Schema>, identity: string): Promise<void>;
}

/** Creates a vault that uses the available master keys. */
export function createVault(keyring: Keyring): Vault {
  const open = async (db: Kysely<Schema>, row: SealedSecretsTable): Promise<Uint8Array> => {
    const { identity } = row;
    const masterKey = keyring.find(row.master_key_id);
    if (masterKey === undefined) {
      const problem = `${identity} is sealed under master key ${row.master_key_id}, which is not available`;
      // A rotation in another program moves the root first, so an unknown key other than the root's is not
      // genuine.
      if ((await readRootKeyId(db)) === row.master_key_id)
        throw new StoreFailureError("LOCKED", new Error(problem));
      throw new CryptoError("SEAL_BROKEN", problem);
    }
    const sealed: SealedSecret = {
      masterKeyId: row.master_key_id,
      wrappedDataKey: row.wrapped_data_key,
      ciphertext: row.ciphertext,
    };
    return openSecret(masterKey, identity, sealed);
  };
  return {
    async read(db, identity) {
      const row = await db
        .selectFrom("sealed_secrets")
        .selectAll()
        .where("identity", "=", identity)
        .executeTakeFirst();
      return row && open(db, row);
    },

    async readSome(db, identities) {
      // PostgreSQL has no empty lists.
      if (identities.length === 0) return new Map();
      const rows = await db
        .selectFrom("sealed_secrets")
        .selectAll()
        .where("identity", "in", [...identities])
        .execute();
      const secrets = new Map<string, Uint8Array | undefined>();
      for (const row of rows) {
        const opening = open(db, row).catch((error: unknown) => {
          if (isClosed(error)) return undefined;
          throw error;
        });
        secrets.set(row.identity, await opening);
      }
      return secrets;
    },

    async put(db, identity, secret) {
      const sealed = sealSecret(await masterKeyInUse(db, keyring), identity, secret);
      await db
        .insertInto("sealed_secrets")
        .values({
          identity,
          master_key_id: sealed.masterKeyId,
          wrapped_data_key: sealed.wrappedDataKey,
          ciphertext: sealed.ciphertext,
        })
        .execute();
    },

    async erase(db, identity) {
      await db.deleteFrom("sealed_secrets").where("identity", "=", identity).execute();
    },
  };
}

/**
 * Waits for a secret and wipes it.
 *
 * @returns whether it opened; undefined if the secret does not exist
 */
export async function opens(reading: Promise<Uint8Array | undefined>): Promise<boolean | undefined> {
  try {
    const secret = await reading;
    if (secret !== undefined) wipe(secret);
    return secret && true;
  } catch (error) {
    if (isClosed(error)) return false;
    throw error;
  }
}

/** Returns whether the secret itself does not open, as opposed to a database that cannot be read. */
function isClosed(error: unknown): boolean {
  const isBroken = error instanceof CryptoError && error.code === "SEAL_BROKEN";
  return isBroken || (error instanceof StoreFailureError && error.code === "LOCKED");
}

/** Returns the root's master key, because a running rotation moves the root first. */
async function masterKeyInUse(db: Kysely<Schema>, keyring: Keyring): Promise<Uint8Array> {
  const masterKeyId = await readRootKeyId(db);
  if (masterKeyId === undefined) return keyring.current;
  const masterKey = keyring.find(masterKeyId);
  if (masterKey !== undefined) return masterKey;
  throw new StoreFailureError(
    "LOCKED",
    new Error(`the store is sealed under master key ${masterKeyId}, which is not available`),
  );
}

async function readRootKeyId(db: Kysely<Schema>): Promise<string | undefined> {
  const root = await db
    .selectFrom("sealed_secrets")
    .select("master_key_id")
    .where("identity", "=", rootIdentity)
    .executeTakeFirst();
  return root?.master_key_id;
}
