import type { Algorithm } from "./algorithms.ts";
import { wipe } from "./bytes.ts";
import { CryptoError } from "./crypto-error.ts";
import type { SlotValues } from "./der.ts";
import type { LibraryPublicKey, LibrarySecretKey } from "./engine.ts";
import { encodePublicKeyPem, encodeSecretKeyPem } from "./key-encoding.ts";
import type { PublicKey, SecretKey } from "./provider.ts";

/** A public key of any engine. Its raw bytes are exported only on request. */
export class EnginePublicKey implements PublicKey {
  readonly algorithm: Algorithm;
  readonly #key: LibraryPublicKey;

  constructor(algorithm: Algorithm, key: LibraryPublicKey) {
    this.algorithm = algorithm;
    this.#key = key;
  }

  exportRaw(): Uint8Array {
    return this.#key.exportRaw();
  }

  toPem(): string {
    return encodePublicKeyPem(this.algorithm, this.exportRaw());
  }
}

/** A secret key of any engine. Private fields keep it out of `JSON.stringify` and `util.inspect`. */
export class EngineSecretKey implements SecretKey {
  readonly algorithm: Algorithm;
  readonly publicKey: PublicKey;
  #key: LibrarySecretKey | undefined;

  constructor(algorithm: Algorithm, key: LibrarySecretKey, publicKey: PublicKey) {
    this.algorithm = algorithm;
    this.publicKey = publicKey;
    this.#key = key;
  }

  /**
   * Returns the library's representation of the key.
   *
   * @throws CLOSED after `erase`
   */
  open(): LibrarySecretKey {
    if (this.#key !== undefined) return this.#key;
    throw new CryptoError("CLOSED", `the ${this.algorithm} secret key has been erased`);
  }

  exportRaw(): Uint8Array {
    return this.open().exportRaw();
  }

  exportSeed(): Uint8Array | undefined {
    return this.open().exportSeed();
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
    this.#key?.erase();
    this.#key = undefined;
  }

  /** Returns the parts to write to PKCS#8. */
  #parts(): SlotValues {
    const seed = this.exportSeed();
    if (seed !== undefined) return { seed };
    const raw = this.exportRaw();
    return this.algorithm === "ECDSA-P256" ? { raw, publicKey: this.publicKey.exportRaw() } : { raw };
  }
}
