import type { Algorithm, KemAlgorithm, MlDsaAlgorithm, SignatureAlgorithm } from "./algorithms.ts";
import type { EcdsaEncoding, Encapsulation, ProviderName } from "./provider.ts";

/**
 * A secret key as received, with every part of the right length. `both` holds a seed and the
 * expanded key that should derive from it; the engine compares them.
 */
export type SecretKeyForm =
  | { readonly kind: "seed"; readonly seed: Uint8Array }
  | { readonly kind: "raw"; readonly raw: Uint8Array }
  | { readonly kind: "both"; readonly seed: Uint8Array; readonly raw: Uint8Array };

/** A secret key in one of its forms. */
export type SeedOrRaw = Exclude<SecretKeyForm, { kind: "both" }>;

/** Signature options after the checks: every option has its value. */
export interface CheckedSignatureOptions {
  /** Undefined for an empty context. */
  readonly context: Uint8Array | undefined;
  readonly ecdsaEncoding: EcdsaEncoding;
}

/** A hash that takes its input in pieces, keeps none of them, and ends with one `digest`. */
export interface IncrementalHash {
  update(chunk: Uint8Array): void;
  digest(): Uint8Array;
}

/**
 * The functions of one library on which `CheckedProvider` is built. The engine may rely on checked
 * inputs: types, lengths and options are right, ML-KEM keys have passed the checks of FIPS 203,
 * sections 7.2 and 7.3, that need no arithmetic, and handles are its own. The raw form of an X-Wing secret key is its
 * seed. It throws INVALID_KEY for bad key material that only the engine can detect.
 *
 * @typeParam PublicHandle the library's form of a parsed public key.
 * @typeParam SecretHandle the library's form of a parsed secret key, which includes the public half.
 */
export interface Engine<PublicHandle, SecretHandle> {
  readonly name: ProviderName;
  readonly version: string;
  readonly cpuPath?: string;

  generateKeyPair(algorithm: Algorithm): Promise<SecretHandle>;
  importPublicKey(algorithm: Algorithm, raw: Uint8Array): PublicHandle;
  importSecretKey(algorithm: Algorithm, form: SecretKeyForm): Promise<SecretHandle>;
  publicHalf(secretKey: SecretHandle): PublicHandle;

  exportPublicKey(publicKey: PublicHandle): Uint8Array;
  exportSecretKey(algorithm: Algorithm, secretKey: SecretHandle): Uint8Array;
  exportSeed(algorithm: Algorithm, secretKey: SecretHandle): Uint8Array | undefined;
  eraseSecretKey(secretKey: SecretHandle): void;

  sign(
    algorithm: SignatureAlgorithm,
    secretKey: SecretHandle,
    message: Uint8Array,
    options: CheckedSignatureOptions,
  ): Promise<Uint8Array>;
  signMu(algorithm: MlDsaAlgorithm, secretKey: SecretHandle, mu: Uint8Array): Promise<Uint8Array>;
  verify(
    algorithm: SignatureAlgorithm,
    publicKey: PublicHandle,
    message: Uint8Array,
    signature: Uint8Array,
    options: CheckedSignatureOptions,
  ): Promise<boolean>;
  encapsulate(algorithm: KemAlgorithm, publicKey: PublicHandle): Promise<Encapsulation>;
  decapsulate(algorithm: KemAlgorithm, secretKey: SecretHandle, ciphertext: Uint8Array): Promise<Uint8Array>;

  sha256(message: Uint8Array): Uint8Array;
  /** SHAKE256 (FIPS 202, section 6.2). */
  startShake256(outputBytes: number): IncrementalHash;
  close(): Promise<void>;
}
