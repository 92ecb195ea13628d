import type { MlDsaAlgorithm, MlKemAlgorithm } from "../algorithms.ts";

export type NativeAlgorithm = MlDsaAlgorithm | MlKemAlgorithm;

/**
 * The interface of the native library, as defined in `native/src/lib.rs`. Each promise stands for one job in
 * libuv's thread pool. Inputs are copied before a call returns. The library checks only lengths; a wrong
 * length is a bug in our code.
 */
export interface NativeAddon {
  /** Version of the native library. */
  version(): string;
  /** Version of AWS-LC, such as "5.12.0". */
  libraryVersion(): string;
  /** Implementation selected for this processor: "AVX2", "NEON" or "portable". */
  cpuPath(): string;
  generateKeyPair(algorithm: NativeAlgorithm): Promise<NativeSecretKey>;
  /** @returns null if the parts are out of range or inconsistent */
  importSecretKey(
    algorithm: NativeAlgorithm,
    seed: Uint8Array | undefined,
    expanded: Uint8Array | undefined,
  ): Promise<NativeSecretKey | null>;
  importPublicKey(algorithm: NativeAlgorithm, publicKey: Uint8Array): NativePublicKey;
}

/** A parsed secret key in memory that JavaScript cannot access. */
export interface NativeSecretKey {
  publicKey(): NativePublicKey;
  exportExpanded(): Uint8Array;
  /** @returns null if the key was imported without a seed */
  exportSeed(): Uint8Array | null;
  /** Overwrites the key once the last running job with it ends. Later calls throw. */
  erase(): void;
  sign(message: Uint8Array, context: Uint8Array): Promise<Uint8Array>;
  signMu(mu: Uint8Array): Promise<Uint8Array>;
  /** Signs without randomness (FIPS 204, section 3.4), for known-answer tests only. */
  signDeterministic(message: Uint8Array, context: Uint8Array): Promise<Uint8Array>;
  decapsulate(ciphertext: Uint8Array): Promise<Uint8Array>;
}

export interface NativePublicKey {
  export(): Uint8Array;
  verify(message: Uint8Array, signature: Uint8Array, context: Uint8Array): Promise<boolean>;
  encapsulate(): Promise<[ciphertext: Uint8Array, sharedSecret: Uint8Array]>;
}
