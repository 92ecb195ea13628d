import type { Algorithm } from "./algorithms.ts";
import { wipe } from "./bytes.ts";
import { CryptoError } from "./crypto-error.ts";
import type { SlotValues } from "./der.ts";
import type { Engine } from "./engine.ts";
import { encodePublicKeyPem, encodeSecretKeyPem } from "./key-encoding.ts";
import type { PublicKey, SecretKey } from "./provider.ts";

/** A public key of any engine. It is exported only on request. */
export class EnginePublicKey<PublicHandle, SecretHandle> implements PublicKey {
  readonly algorithm: Algorithm;
  readonly #engine: Engine<PublicHandle, SecretHandle>;
  readonly #handle: PublicHandle;

  constructor(engine: Engine<PublicHandle, SecretHandle>, algorithm: Algorithm, handle: PublicHandle) {
    this.algorithm = algorithm;
    this.#engine = engine;
    this.#handle = handle;
  }

  /** Returns the engine's form of the key. */
  open(): PublicHandle {
    return this.#handle;
  }

  exportRaw(): Uint8Array {
    return this.#engine.exportPublicKey(this.#handle);
  }

  toPem(): string {
    return encodePublicKeyPem(this.algorithm, this.exportRaw());
  }
}

/** A secret key of any engine; private fields keep it out of `JSON.stringify` and `util.inspect`. */
export class EngineSecretKey<PublicHandle, SecretHandle> implements SecretKey {
  readonly algorithm: Algorithm;
  readonly publicKey: PublicKey;
  readonly #engine: Engine<PublicHandle, SecretHandle>;
  #handle: SecretHandle | undefined;

  constructor(
    engine: Engine<PublicHandle, SecretHandle>,
    algorithm: Algorithm,
    handle: SecretHandle,
    publicKey: PublicKey,
  ) {
    this.algorithm = algorithm;
    this.publicKey = publicKey;
    this.#engine = engine;
    this.#handle = handle;
  }

  /**
   * Returns the engine's form of the key.
   *
   * @throws CLOSED after `erase`
   */
  open(): SecretHandle {
    if (this.#handle === undefined)
      throw new CryptoError("CLOSED", `the ${this.algorithm} secret key has been erased`);
    return this.#handle;
  }

  exportRaw(): Uint8Array {
    return this.#engine.exportSecretKey(this.algorithm, this.open());
  }

  exportSeed(): Uint8Array | undefined {
    return this.#engine.exportSeed(this.algorithm, this.open());
  }

  toPem(): string {
    const parts = this.#parts();
    try {
      return encodeSecretKeyPem(this.algorithm, parts);
    } finally {
      wipe(parts.seed, parts.raw);
    }
  }

  erase(): void {
    if (this.#handle !== undefined) this.#engine.eraseSecretKey(this.#handle);
    this.#handle = undefined;
  }

  /** Returns the parts that PKCS#8 of this key holds. */
  #parts(): SlotValues {
    const seed = this.exportSeed();
    if (seed !== undefined) return { seed };
    const raw = this.exportRaw();
    return this.algorithm === "ECDSA-P256" ? { raw, publicKey: this.publicKey.exportRaw() } : { raw };
  }
}
