/** The issuer's stored keys: those that verify tokens, and those that sign them. */
import { type PublicJwk, toPublicJwk } from "../crypto/jwk.ts";
import type { TokenAlgorithm } from "../crypto/jwt.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "../crypto/provider.ts";
import { RecordDamagedError } from "../database/store-error.ts";
import { importSealedKey, nameDamaged } from "../secrets/sealed-keys.ts";
import type { IssuerKeyRecord, IssuerStore } from "./issuer-store.ts";

/** A verification key. */
export interface IssuerKey {
  readonly record: IssuerKeyRecord;
  readonly publicKey: PublicKey;
  readonly jwk: PublicJwk;
}

/** A signing key. */
export interface Signer {
  readonly keyId: string;
  readonly secretKey: SecretKey;
}

export interface IssuerKeysDeps {
  readonly provider: CryptoProvider;
  readonly store: IssuerStore;
  readonly now: () => Date;
  readonly lifetimeSeconds: number;
}

/** The keys that this program has loaded. Other programs may add and retire keys at any time. */
export class IssuerKeys {
  readonly #deps: IssuerKeysDeps;
  readonly #signers = new Map<TokenAlgorithm, Signer>();
  #keys: readonly IssuerKey[] = [];

  constructor(deps: IssuerKeysDeps) {
    this.#deps = deps;
  }

  /** Reads the keys whose tokens may still be valid. */
  async refresh(): Promise<void> {
    const { provider, store, now, lifetimeSeconds } = this.#deps;
    const known = new Map(this.#keys.map((key) => [key.record.keyId, key]));
    const records = await store.listKeys(new Date(now().getTime() - lifetimeSeconds * 1000));
    this.#keys = records.map((record) => {
      const { publicKey = importPublicKey(provider, record), jwk = toPublicJwk(publicKey) } =
        known.get(record.keyId) ?? {};
      return { record, publicKey, jwk };
    });
  }

  /** Lists the current key, and retired keys whose last token has not expired. */
  listLiving(): readonly IssuerKey[] {
    const { now, lifetimeSeconds } = this.#deps;
    return this.#keys.filter(({ record: { retiredAt } }) => {
      return retiredAt === undefined || retiredAt.getTime() + lifetimeSeconds * 1000 > now().getTime();
    });
  }

  /** Returns whether an algorithm has a current key. */
  canSign(algorithm: TokenAlgorithm): boolean {
    return this.#findCurrent(algorithm) !== undefined;
  }

  /** Finds the current key of an algorithm. Called for each token, so that no retired key signs one. */
  async findSigner(algorithm: TokenAlgorithm): Promise<Signer> {
    await this.refresh();
    const current = this.#findCurrent(algorithm);
    if (current === undefined) throw new Error(`the store has no ${algorithm} key that signs tokens`);
    const { keyId, publicKey } = current.record;
    const last = this.#signers.get(algorithm);
    if (last?.keyId === keyId) return last;
    // Do not erase the previous key here: calls may be signing with it.
    const record = `issuer key ${keyId}`;
    const rethrow = (error: unknown): never => {
      throw nameDamaged(record, error);
    };
    const seed = await this.#deps.store.openSeed(keyId).catch(rethrow);
    if (seed === undefined) {
      // Another program may have retired it since the keys were read, and then created a new key.
      await this.refresh();
      if (this.#findCurrent(algorithm)?.record.keyId === keyId) throw new RecordDamagedError(record);
      return this.findSigner(algorithm);
    }
    const secretKey = await importSealedKey(this.#deps.provider, algorithm, seed, publicKey).catch(rethrow);
    const signer = { keyId, secretKey };
    this.#signers.set(algorithm, signer);
    return signer;
  }

  /** The key that signed last; it may have been retired since. */
  lastSigner(algorithm: TokenAlgorithm): Signer | undefined {
    return this.#signers.get(algorithm);
  }

  /** Erases the signing keys. */
  erase(): void {
    for (const { secretKey } of this.#signers.values()) secretKey.erase();
  }

  #findCurrent(algorithm: TokenAlgorithm): IssuerKey | undefined {
    return this.#keys.find(({ record }) => record.retiredAt === undefined && record.algorithm === algorithm);
  }
}

function importPublicKey(provider: CryptoProvider, { algorithm, publicKey }: IssuerKeyRecord): PublicKey {
  return provider.importPublicKey(algorithm, { raw: publicKey });
}
