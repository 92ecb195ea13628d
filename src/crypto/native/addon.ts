import type { MlDsaAlgorithm, MlKemAlgorithm } from "../algorithms.ts";

export type NativeAlgorithm = MlDsaAlgorithm | MlKemAlgorithm;

/**
 * The native library, as `native/src/lib.rs` defines it. Each promise stands for one job in libuv's thread pool. Inputs
 * are copied before the call returns. The library checks lengths only; wrong ones are errors of ours.
 */
export interface NativeAddon {
  /** The version of the library itself. */
  version(): string;
  /** The version of AWS-LC, such as "5.12.0". */
  libraryVersion(): string;
  /** The code that computes on this processor: "AVX2", "NEON" or "portable". */
  cpuPath(): string;
  generateKeyPair(algorithm: NativeAlgorithm): Promise<NativeSecretKey>;
  /** @returns null if the parts are out of range or contradict each other */
  importSecretKey(
    algorithm: NativeAlgorithm,
    seed: Uint8Array | undefined,
    expanded: Uint8Array | undefined,
  ): Promise<NativeSecretKey | null>;
  importPublicKey(algorithm: NativeAlgorithm, publicKey: Uint8Array): NativePublicKey;
}

/** A parsed secret key in memory that JavaScript does not see. */
export interface NativeSecretKey {
  publicKey(): NativePublicKey;
  exportExpanded(): Uint8Array;
  /** @returns null for a key that came without a seed */
  exportSeed(): Uint8Array | null;
  /** Overwrites the key as soon as the last running job with it ends. Later calls throw. */
  erase(): void;
  sign(message: Uint8Array, context: Uint8Array): Promise<Uint8Array>;
  signMu(mu: Uint8Array): Promise<Uint8Array>;
  /** Signs without randomness (FIPS 204, section 3.4), for known-answer tests only. */
  signDeterministic(message: Uint8Array, context: Uint8Array): Promise<Uint8Array>;
  decapsulate(ciphertext: Uint8Array): Promise<Uint8Array>;
}

/** A parsed public key. */
export interface NativePublicKey {
  export(): Uint8Array;
  verify(message: Uint8Array, signature: Uint8Array, context: Uint8Array): Promise<boolean>;
  encapsulate(): Promise<[ciphertext: Uint8Array, sharedSecret: Uint8Array]>;
}
