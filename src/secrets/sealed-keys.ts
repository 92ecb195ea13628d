/**
 * Secret keys in the store, sealed in their shortest form: the seed, or the whole key if it has none. Keys of
 * SLH-DSA and ECDSA have no seed, and keys of ML-DSA and ML-KEM have none if they were imported in expanded form. The length
 * of the sealed bytes tells the forms apart.
 */
import { LRUCache } from "lru-cache";
import { type Algorithm, algorithms } from "../crypto/algorithms.ts";
import { equalBytes, wipe } from "../crypto/bytes.ts";
import { CryptoError } from "../crypto/crypto-error.ts";
import { withFreshKeyPair } from "../crypto/fresh-key-pair.ts";
import type { CryptoProvider, SecretKey } from "../crypto/provider.ts";
import { RecordDamagedError } from "../database/store-error.ts";

/** Opens secrets; the caller wipes them. */
export interface SecretReader {
  /** @throws SEAL_BROKEN (CryptoError) */
  readSecret(identity: string): Promise<Uint8Array | undefined>;
}

/** Turns the error of a secret that does not open into one that names its record; returns any other error unchanged. */
export function nameDamaged(record: string, error: unknown): unknown {
  const isBroken = error instanceof CryptoError && error.code !== "CLOSED";
  return isBroken ? new RecordDamagedError(record, error) : error;
}

/** Writes secrets within a transaction. */
export interface SecretWriter extends SecretReader {
  putSecret(identity: string, secret: Uint8Array): Promise<void>;
}

/** Runs work that reads and writes secrets in a transaction. */
export interface SecretStore extends SecretReader {
  write(work: (transaction: SecretWriter) => Promise<void>): Promise<void>;
}

/** Lends the bytes of a secret key to seal, then wipes them: the seed, or the whole key if it has none. */
export async function lendSecret<T>(
  secretKey: SecretKey,
  use: (secret: Uint8Array) => Promise<T>,
): Promise<T> {
  const secret = secretKey.exportSeed() ?? secretKey.exportRaw();
  try {
    return await use(secret);
  } finally {
    wipe(secret);
  }
}

/** Lends the bytes of a secret key as `lendSecret` does, or nothing if there is no key. */
export function lendSecretOf<T>(
  secretKey: SecretKey | undefined,
  use: (secret: Uint8Array | undefined) => Promise<T>,
): Promise<T> {
  return secretKey === undefined ? use(undefined) : lendSecret(secretKey, use);
}

/**
 * Imports a secret key from unsealed bytes, and wipes the bytes.
 *
 * @param secret the bytes that `lendSecret` lent: a seed if it has the length of a seed, otherwise the whole key.
 * @param publicKey raw; if given, it must be the public key of this secret key.
 * @throws SEAL_BROKEN, INVALID_KEY (CryptoError)
 */
export async function importSealedKey(
  provider: CryptoProvider,
  algorithm: Algorithm,
  secret: Uint8Array,
  publicKey?: Uint8Array,
): Promise<SecretKey> {
  try {
    const isSeed = secret.length === algorithms[algorithm].seedBytes;
    const secretKey = await provider.importSecretKey(algorithm, isSeed ? { seed: secret } : { raw: secret });
    if (publicKey === undefined || equalBytes(secretKey.publicKey.exportRaw(), publicKey)) return secretKey;
    secretKey.erase();
    throw new CryptoError("SEAL_BROKEN", `a sealed ${algorithm} key does not match its public key`);
  } finally {
    wipe(secret);
  }
}

/** A sealed secret key, as its record describes it. */
export interface SealedKey {
  /** Names the record for a person, such as "user ada". */
  readonly record: string;
  /** Names the secret in the vault. */
  readonly identity: string;
  readonly algorithm: Algorithm;
  /** Raw. */
  readonly publicKey: Uint8Array;
}

/**
 * Opens a sealed secret key, lends it, and erases it.
 *
 * @throws RecordDamagedError if it is missing, was changed, or is another key
 */
export async function withSealedKey<T>(
  { store, provider }: { readonly store: SecretReader; readonly provider: CryptoProvider },
  key: SealedKey,
  use: (secretKey: SecretKey) => Promise<T>,
): Promise<T> {
  const secretKey = await openSealedKey(store, provider, key);
  try {
    return await use(secretKey);
  } finally {
    secretKey.erase();
  }
}

/** Opens a sealed secret key. The caller erases it. @throws RecordDamagedError */
export function openSealedKey(
  store: SecretReader,
  provider: CryptoProvider,
  { record, identity, algorithm, publicKey }: SealedKey,
): Promise<SecretKey> {
  return requireOpened(record, async () => {
    const secret = await store.readSecret(identity);
    return secret && importSealedKey(provider, algorithm, secret, publicKey);
  });
}

/**
 * Opens a secret key of the service itself, or creates it in a new store. If several programs start at once, one
 * creates it.
 *
 * @throws RecordDamagedError if it was changed
 */
export function openOrMakeKey(
  store: SecretStore,
  provider: CryptoProvider,
  { record, identity, algorithm }: Omit<SealedKey, "publicKey">,
): Promise<SecretKey> {
  const keep = (fresh: Uint8Array): Promise<void> =>
    store.write(async (transaction) => {
      if ((await transaction.readSecret(identity)) === undefined)
        await transaction.putSecret(identity, fresh);
    });
  return requireOpened(record, async () => {
    let secret = await store.readSecret(identity);
    if (secret === undefined) {
      await withFreshKeyPair(provider, algorithm, ({ secretKey }) => lendSecret(secretKey, keep));
      secret = await store.readSecret(identity);
    }
    return secret && importSealedKey(provider, algorithm, secret);
  });
}

/** @throws RecordDamagedError for a secret that is missing or does not open */
async function requireOpened(record: string, open: () => Promise<SecretKey | undefined>): Promise<SecretKey> {
  const secretKey = await open().catch((error: unknown) => {
    throw nameDamaged(record, error);
  });
  if (secretKey === undefined) throw new RecordDamagedError(record);
  return secretKey;
}

/** Secret keys that stay open, also between their uses. */
export interface OpenKeys {
  /** Lends a key. It stays open until its use has ended, even if others take its place. @throws RecordDamagedError */
  lend<T>(key: SealedKey, use: (secretKey: SecretKey) => Promise<T>): Promise<T>;
  /** Erases all, those in use after their use. */
  close(): void;
}

/** An open key, and how many use it. */
interface OpenKey {
  readonly opening: Promise<SecretKey>;
  uses: number;
  isDropped: boolean;
}

/** @param maxKeys the most keys to keep open besides those in use; the least recently used key is closed first */
export function createOpenKeys(store: SecretReader, provider: CryptoProvider, maxKeys = 1000): OpenKeys {
  const eraseUnused = ({ opening, uses, isDropped }: OpenKey): void => {
    if (isDropped && uses === 0) void opening.then((secretKey) => secretKey.erase()).catch(() => {});
  };
  const open = new LRUCache<string, OpenKey>({
    max: maxKeys,
    dispose: (key) => {
      key.isDropped = true;
      eraseUnused(key);
    },
  });
  return {
    async lend(key, use) {
      const { identity } = key;
      const found = open.get(identity) ?? {
        opening: openSealedKey(store, provider, key),
        uses: 0,
        isDropped: false,
      };
      found.uses += 1;
      open.set(identity, found);
      try {
        const secretKey = await found.opening.catch((error: unknown) => {
          if (open.peek(identity) === found) open.delete(identity);
          throw error;
        });
        return await use(secretKey);
      } finally {
        found.uses -= 1;
        eraseUnused(found);
      }
    },
    close: () => open.clear(),
  };
}
