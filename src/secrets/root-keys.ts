/** The store's own keys, derived from one sealed secret. */
import { hkdfSync, randomBytes } from "node:crypto";
import { sql } from "kysely";
import { wipe } from "../crypto/bytes.ts";
import { CryptoError } from "../crypto/crypto-error.ts";
import type { Database } from "../database/database.ts";
import { listTables, type TableOwner } from "../database/schema.ts";
import { StorageError, StoreDamagedError, StoreFailureError } from "../database/store-error.ts";
import { type Keyring, type MasterKeySource, openKeyring } from "./master-key.ts";
import { createVault, rootIdentity, type Vault } from "./vault.ts";

/** 32-byte keys with one purpose each. */
export interface RootKeys {
  /** Tags audit entries. */
  readonly audit: Uint8Array;
  /** Tags records. */
  readonly records: Uint8Array;
  /** Seals the stored answers of idempotent calls. */
  readonly answers: Uint8Array;
}

/** What the master key unlocks. */
export interface UnlockedStore {
  readonly keyring: Keyring;
  readonly vault: Vault;
  readonly keys: RootKeys;
}

/**
 * Opens the vault and the root keys, or creates the root key in a new store. Detects a wrong master key.
 *
 * @throws StorageError with a sentence for the operator
 */
export async function unlock(database: Database, source: MasterKeySource): Promise<UnlockedStore> {
  const { reader } = database;
  const anySecret = await reader.selectFrom("sealed_secrets").select("identity").limit(1).executeTakeFirst();
  const keyring = openKeyring(source, anySecret === undefined);
  const vault = createVault(keyring);
  const root = await openOwnSecret(database, vault, {
    identity: rootIdentity,
    noun: "its root key",
    make: async () => randomBytes(32),
  });
  try {
    return { keyring, vault, keys: deriveKeys(root) };
  } finally {
    wipe(root);
  }
}

/** A secret that a store has from the start. */
interface OwnSecret {
  readonly identity: string;
  /** Name for people: "its root key". */
  readonly noun: string;
  readonly make: () => Promise<Uint8Array>;
}

/**
 * Opens one of the store's own secrets, or creates it in a new store. The caller wipes it.
 *
 * @throws StorageError with a sentence for the operator
 */
export function openOwnSecret(
  { name, owners, writer }: Database,
  vault: Vault,
  { identity, noun, make }: OwnSecret,
): Promise<Uint8Array> {
  return writer.transaction().execute(async (transaction) => {
    const known = await vault.read(transaction, identity).catch((error: unknown) => {
      if (error instanceof StoreFailureError && error.code === "LOCKED") throw wrongMasterKey(name);
      if (error instanceof CryptoError && error.code === "SEAL_BROKEN")
        throw new StoreDamagedError(name, `${noun} was changed outside the server`);
      throw error;
    });
    if (known !== undefined) return known;
    // With a new secret, existing tags and published checkpoints could no longer be verified.
    if (await hasBeenUsed(transaction, owners)) throw new StoreDamagedError(name, `${noun} is missing`);
    const fresh = await make();
    await vault.put(transaction, identity, fresh);
    return fresh;
  });
}

/**
 * Returns whether a store has rows other than secrets: a program writes those only after creating the keys.
 */
async function hasBeenUsed(db: Database["writer"], owners: readonly TableOwner[]): Promise<boolean> {
  for (const [table] of listTables(owners)) {
    if (table === "sealed_secrets") continue;
    const row = await db.selectFrom(table).select(sql<number>`1`.as("found")).limit(1).executeTakeFirst();
    if (row !== undefined) return true;
  }
  return false;
}

function wrongMasterKey(name: string): StorageError {
  return new StorageError(
    `the master key is not the one that sealed the store ${name}; use that key or a different store`,
  );
}

function deriveKeys(root: Uint8Array): RootKeys {
  // RFC 5869; the root is uniformly random, so it needs no salt.
  const derive = (purpose: string): Uint8Array =>
    new Uint8Array(hkdfSync("sha256", root, new Uint8Array(), `quantum-safe-playground ${purpose}`, 32));
  return { audit: derive("audit"), records: derive("records"), answers: derive("answers") };
}
