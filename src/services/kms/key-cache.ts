/**
 * Caches parsed keys.
 *
 * An entry may be stale: the transaction that records a use checks the key against the store, so a stale key
 * never produces an answer.
 */
import { LRUCache } from "lru-cache";
import { CryptoError } from "../../crypto/crypto-error.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "../../crypto/provider.ts";
import { poll } from "../../database/poll.ts";
import { importSealedKey } from "../../secrets/sealed-keys.ts";
import { keyDamaged } from "./key-refusals.ts";
import type { KmsStore, StoredKey } from "./store.ts";

/** A key ready for use. */
export interface CachedKey extends StoredKey {
  publicKey(): PublicKey;
  /**
   * Returns the secret half, opened and parsed on first use.
   *
   * @throws CLOSED (CryptoError) if the cache has evicted the key, or the key was destroyed since it was
   *   read; KEY_DAMAGED
   */
  secretKey(): Promise<SecretKey>;
}

export type KeyCache = ReturnType<typeof createKeyCache>;

/** Maximum number of cached keys; each takes about 10 KB. */
const maxKeys = 2000;
/** Maximum number of cached handles. */
const maxHandles = 10_000;
/** Interval of polls for keys that other replicas changed, to erase them here too. */
const pollIntervalMs = 1000;

export function createKeyCache({
  provider,
  keys,
}: {
  readonly provider: CryptoProvider;
  readonly keys: KmsStore;
}) {
  const cached = new LRUCache<string, Promise<OpenKey | undefined>>({
    max: maxKeys,
    dispose: (loading) => void loading.then((key) => key?.erase()).catch(() => {}),
  });
  /** Evicts a changed key and erases its secret half. */
  const forget = (keyId: string): void => void cached.delete(keyId);
  const load = async (keyId: string): Promise<OpenKey | undefined> => {
    const stored = await keys.find(keyId);
    return stored && openKey(provider, keys, stored, () => forget(keyId));
  };
  const stopPolling = forgetChanged(keys, forget);
  return {
    /**
     * @returns undefined if no such key exists
     */
    async find(keyId: string): Promise<CachedKey | undefined> {
      const known = cached.get(keyId) ?? load(keyId);
      cached.set(keyId, known);
      try {
        const key = await known;
        // Cache only an existing, intact key.
        if (key === undefined || !key.isIntact) cached.delete(keyId);
        return key;
      } catch (error) {
        cached.delete(keyId);
        throw error;
      }
    },
    forget,
    /**
     * Key IDs that names last resolved to, by owner and handle. A stale name leads to a key that is no longer
     * primary, or that has changed; both are detected on use.
     */
    handles: new LRUCache<string, string>({ max: maxHandles }),
    async close(): Promise<void> {
      await stopPolling();
      cached.clear();
    },
  };
}

/**
 * Polls for keys whose state other replicas changed, and evicts them.
 *
 * @returns a function that stops polling
 */
function forgetChanged(keys: KmsStore, forget: (keyId: string) => void): () => Promise<void> {
  let seen: number | undefined;
  const refresh = async (): Promise<void> => {
    const newest = await keys.newestEntry();
    const changed = seen === undefined ? [] : await keys.listChanged(seen, newest);
    for (const keyId of changed) forget(keyId);
    seen = newest;
  };
  const input = { work: "kms_key_cache", everyMs: pollIntervalMs, startsAtOnce: true };
  return poll({ ...input, background: keys.background }, refresh);
}

type OpenKey = ReturnType<typeof openKey>;

function openKey(provider: CryptoProvider, keys: KmsStore, stored: StoredKey, forget: () => void) {
  const { keyId, algorithm, publicKey: raw } = stored.record;
  let publicKey: PublicKey | undefined;
  let opening: Promise<SecretKey> | undefined;
  let isErased = false;
  const open = async (): Promise<SecretKey> => {
    try {
      const secret = await keys.openSecret(keyId);
      if (secret !== undefined) return await importSealedKey(provider, algorithm, secret, raw);
    } catch (error) {
      if (error instanceof CryptoError && error.code !== "CLOSED") throw keyDamaged(keyId, error);
      throw error;
    }
    // Either its secret half was removed from the store, or the key was destroyed after its record was read.
    if ((await keys.find(keyId))?.tag === stored.tag) throw keyDamaged(keyId);
    forget();
    throw new CryptoError("CLOSED", "the key has changed since it was read");
  };
  return {
    ...stored,
    publicKey(): PublicKey {
      publicKey ??= provider.importPublicKey(algorithm, { raw });
      return publicKey;
    },
    async secretKey(): Promise<SecretKey> {
      // A key opened after eviction would never be erased. Callers look the key up again.
      if (isErased) throw new CryptoError("CLOSED", "the key is no longer in the cache");
      opening ??= open().catch((error: unknown) => {
        // The next attempt may succeed: the store may be back, or the key repaired.
        opening = undefined;
        throw error;
      });
      return opening;
    },
    erase(): void {
      isErased = true;
      opening?.then((secretKey) => secretKey.erase()).catch(() => {});
    },
  };
}
