import type { Algorithm, CompositeAlgorithm } from "./algorithms.ts";
import type { EcdsaEncoding, Encapsulation, ProviderName } from "./provider.ts";

/**
 * A secret key as received, with every part of the right length. `both` holds a seed and its supposed
 * expanded key; the engine checks that they match.
 */
export type SecretKeyForm =
  | { readonly kind: "seed"; readonly seed: Uint8Array }
  | { readonly kind: "raw"; readonly raw: Uint8Array }
  | { readonly kind: "both"; readonly seed: Uint8Array; readonly raw: Uint8Array };

/** A secret key in exactly one form. */
export type SeedOrRaw = Exclude<SecretKeyForm, { kind: "both" }>;

/** Validated signature options with defaults filled in. */
export interface CheckedSignatureOptions {
  /** Undefined for an empty context. */
  readonly context: Uint8Array | undefined;
  readonly ecdsaEncoding: EcdsaEncoding;
}

/** A streaming hash that buffers no input and is finished by one `digest` call. */
export interface IncrementalHash {
  update(chunk: Uint8Array): void;
  digest(): Uint8Array;
}

/** A parsed public key in the library's own representation. */
export interface LibraryPublicKey {
  exportRaw(): Uint8Array;
  verify(message: Uint8Array, signature: Uint8Array, options: CheckedSignatureOptions): Promise<boolean>;
  /** Verifies a signature of the message with this representative; for ML-DSA on the calling thread. */
  verifyRepresentative(representative: Uint8Array, signature: Uint8Array): Promise<boolean>;
  encapsulate(): Promise<Encapsulation>;
}

/** A parsed secret key in the library's own representation. */
export interface LibrarySecretKey {
  readonly publicKey: LibraryPublicKey;
  exportRaw(): Uint8Array;
  exportSeed(): Uint8Array | undefined;
  erase(): void;
  sign(message: Uint8Array, options: CheckedSignatureOptions): Promise<Uint8Array>;
  signRepresentative(representative: Uint8Array): Promise<Uint8Array>;
  decapsulate(ciphertext: Uint8Array): Promise<Uint8Array>;
}

/** Algorithms that engines implement. Composites are made of them: see composite-engine.ts. */
export type EngineAlgorithm = Exclude<Algorithm, CompositeAlgorithm>;

/**
 * One library's implementation, on which `CheckedProvider` builds. Engines may rely on validated input:
 * types, lengths and options are right, ML-KEM keys have passed the checks of FIPS 203, sections 7.2 and 7.3,
 * that need no arithmetic, and keys are used only for operations of their algorithm. The raw form of an
 * X-Wing secret key is its seed.
 *
 * @throws INVALID_KEY for bad key material that only the engine can detect
 */
export interface Engine<Name extends Algorithm = EngineAlgorithm> {
  readonly name: ProviderName;
  readonly version: string;
  readonly cpuPath?: string;

  generateKeyPair(algorithm: Name): Promise<LibrarySecretKey>;
  importPublicKey(algorithm: Name, raw: Uint8Array): LibraryPublicKey;
  importSecretKey(algorithm: Name, form: SecretKeyForm): Promise<LibrarySecretKey>;

  close(): Promise<void>;
}
