/**
 * Secret keys in the store, sealed in their shortest form: the seed, or the whole key if it has no seed.
 * SLH-DSA and ECDSA keys have no seed, nor do ML-DSA and ML-KEM keys that were imported in expanded form. The
 * length of the sealed bytes distinguishes the forms.
 */
import { LRUCache } from "lru-cache";
import { type Algorithm, algorithms } from "../crypto/algorithms.ts";
import { equalBytes, wipe } from "../crypto/bytes.ts";
import { CryptoError } from "../crypto/crypto-error.ts";
import type { CryptoProvider, SecretKey } from "../crypto/provider.ts";
import { RecordDamagedError } from "../database/store-error.ts";

/** Opens secrets; the caller wipes them. */
export interface SecretReader {
  /** @throws SEAL_BROKEN (CryptoError) */
  readSecret(identity: string): Promise<Uint8Array | undefined>;
}

/**
 * Converts the error of a secret that does not open into one that names its record; returns other errors
 * unchanged.
 */
export function nameDamaged(record: string, error: unknown): unknown {
  const isBroken = error instanceof CryptoError && error.code !== "CLOSED";
  return isBroken ? new RecordDamagedError(record, error) : error;
}

/**
 * Passes the bytes of a secret key to an operation that seals them (the seed, or the whole key if it has
 * none), then wipes them.
 */
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

/** Like `lendSecret`, but passes undefined if the key is missing. */
export function lendSecretOf<T>(
  secretKey: SecretKey | undefined,
  use: (secret: Uint8Array | undefined) => Promise<T>,
): Promise<T> {
  return secretKey === undefined ? use(undefined) : lendSecret(secretKey, use);
}

/**
 * Imports a secret key from unsealed bytes and wipes the bytes.
 *
 * @param secret bytes from `lendSecret`: a seed if they have a seed's length, otherwise the whole key
 * @param publicKey raw; if given, it must match the secret key
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

/** A sealed secret key, as described by its record. */
export interface SealedKey {
  /** The record's name for people, such as "user ada". */
  readonly record: string;
  /** The secret's identity in the vault. */
  readonly identity: string;
  readonly algorithm: Algorithm;
  /** Raw; if given, the secret key must match it. */
  readonly publicKey?: Uint8Array;
}

/**
 * Opens a sealed secret key for one operation, then erases it.
 *
 * @throws RecordDamagedError if it is missing, was changed, or does not match its public key
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

/**
 * Opens a sealed secret key. The caller erases it.
 *
 * @throws RecordDamagedError if it is missing, was changed, or does not match its public key
 */
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

/** @throws RecordDamagedError for a secret that is missing or does not open */
async function requireOpened(record: string, open: () => Promise<SecretKey | undefined>): Promise<SecretKey> {
  const secretKey = await open().catch((error: unknown) => {
    throw nameDamaged(record, error);
  });
  if (secretKey === undefined) throw new RecordDamagedError(record);
  return secretKey;
}

/** A cache of open secret keys, which stay open between uses. */
export interface OpenKeys {
  /**
   * Runs an operation with a key, which stays open until the operation ends, even if it is evicted meanwhile.
   *
   * @throws RecordDamagedError
   */
  withKey<T>(key: SealedKey, use: (secretKey: SecretKey) => Promise<T>): Promise<T>;
  /** Erases all keys. Keys in use are erased after use. */
  close(): void;
}

/** An open key and its number of current uses. */
interface OpenKey {
  readonly opening: Promise<SecretKey>;
  uses: number;
  isDropped: boolean;
}

/** @param maxKeys maximum idle keys to keep open; the least recently used key is evicted first */
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
    async withKey(key, use) {
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
