/**
 * Caches parsed keys. An entry may be stale: each use is checked against the store in the transaction that records it,
 * so a stale key never produces an answer.
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
  /** @throws KEY_DAMAGED */
  publicKey(): PublicKey;
  /**
   * The secret half, opened and parsed at the first use.
   *
   * @throws CLOSED (CryptoError) if the cache has forgotten the key, or the key was destroyed since it was read;
   *   KEY_DAMAGED
   */
  secretKey(): Promise<SecretKey>;
}

/** Parsed keys. */
export interface KeyCache {
  /** @returns undefined if there is no such key */
  find(keyId: string): Promise<CachedKey | undefined>;
  /** Removes a changed key from the cache and erases its secret half. */
  forget(keyId: string): void;
  /**
   * The IDs that names stood for when they were last looked up, by owner and handle. A name that stands for another key
   * by now leads to a key that is not primary any more, or to one that has changed.
   */
  readonly handles: LRUCache<string, string>;
  close(): Promise<void>;
}

/** The number of keys to cache; one takes about 10 KB. */
const maxKeys = 2000;
/** The number of handles to cache. */
const maxHandles = 10_000;
/** Milliseconds between polls for keys that other replicas changed, to erase them here too. */
const pollIntervalMs = 1000;

/** The dependencies of the cache. */
export interface KeyCacheDeps {
  readonly provider: CryptoProvider;
  readonly keys: KmsStore;
}

/** Makes a cache. */
export function createKeyCache({ provider, keys }: KeyCacheDeps): KeyCache {
  const cached = new LRUCache<string, Promise<OpenKey | undefined>>({
    max: maxKeys,
    dispose: (loading) => void loading.then((key) => key?.erase()).catch(() => {}),
  });

  const forget = (keyId: string): void => void cached.delete(keyId);
  const load = async (keyId: string): Promise<OpenKey | undefined> => {
    const stored = await keys.find(keyId);
    return stored && new OpenKey(provider, keys, stored, () => forget(keyId));
  };
  const stopPolling = forgetChanged(keys, forget);

  return {
    async find(keyId) {
      const known = cached.get(keyId) ?? load(keyId);
      cached.set(keyId, known);
      try {
        const key = await known;
        // Cache only a key that exists and is intact.
        if (key === undefined || !key.isIntact) cached.delete(keyId);
        return key;
      } catch (error) {
        cached.delete(keyId);
        throw error;
      }
    },
    forget,
    handles: new LRUCache({ max: maxHandles }),
    async close() {
      await stopPolling();
      cached.clear();
    },
  };
}

/** Polls for keys whose state other replicas changed, and forgets them. @returns a function that stops it */
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

class OpenKey implements CachedKey {
  readonly record: StoredKey["record"];
  readonly tag: string;
  readonly isIntact: boolean;
  readonly loggedState: StoredKey["loggedState"];
  readonly #provider: CryptoProvider;
  readonly #keys: KmsStore;
  readonly #forget: () => void;
  #publicKey: PublicKey | undefined;
  #secretKey: Promise<SecretKey> | undefined;
  #isErased = false;

  constructor(provider: CryptoProvider, keys: KmsStore, stored: StoredKey, forget: () => void) {
    this.#provider = provider;
    this.#keys = keys;
    this.#forget = forget;
    this.record = stored.record;
    this.tag = stored.tag;
    this.isIntact = stored.isIntact;
    this.loggedState = stored.loggedState;
  }

  publicKey(): PublicKey {
    const { algorithm, publicKey: raw } = this.record;
    this.#publicKey ??= this.#provider.importPublicKey(algorithm, { raw });
    return this.#publicKey;
  }

  async secretKey(): Promise<SecretKey> {
    // A key opened after eviction would never be erased. Callers look the key up again.
    if (this.#isErased) throw new CryptoError("CLOSED", "the key is no longer in the cache");
    this.#secretKey ??= this.#open().catch((error: unknown) => {
      // The next attempt may succeed: the store may be back, or the key repaired.
      this.#secretKey = undefined;
      throw error;
    });
    return this.#secretKey;
  }

  erase(): void {
    this.#isErased = true;
    this.#secretKey?.then((secretKey) => secretKey.erase()).catch(() => {});
  }

  async #open(): Promise<SecretKey> {
    const { keyId, algorithm, publicKey } = this.record;
    try {
      const secret = await this.#keys.openSecret(keyId);
      if (secret !== undefined) return await importSealedKey(this.#provider, algorithm, secret, publicKey);
    } catch (error) {
      if (error instanceof CryptoError && error.code !== "CLOSED") throw keyDamaged(keyId, error);
      throw error;
    }
    // Either its secret half was removed from the store, or the key was destroyed after its record was read.
    if ((await this.#keys.find(keyId))?.tag === this.tag) throw keyDamaged(keyId);
    this.#forget();
    throw new CryptoError("CLOSED", "the key has changed since it was read");
  }
}
