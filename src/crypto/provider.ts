import type { Algorithm } from "./algorithms.ts";

export type ProviderName = "native" | "openssl";

/**
 * A parsed public key. It belongs to the provider that created it, and other providers refuse it.
 * To move it, export it from one provider and import it into the other.
 */
export interface PublicKey {
  readonly algorithm: Algorithm;

  /**
   * Returns a copy of the raw bytes: the form of FIPS 203, 204 or 205, for ECDSA the
   * uncompressed point (SEC 1, section 2.3.3), for X-Wing the ML-KEM-768 key and then the X25519 key
   * (draft-connolly-cfrg-xwing-kem-11, section 5.2). The length is `publicKeyBytes`.
   */
  exportRaw(): Uint8Array;

  /**
   * Returns SubjectPublicKeyInfo in PEM: RFC 9881 (ML-DSA), 9935 (ML-KEM), 9909 (SLH-DSA), 5480 (ECDSA),
   * draft-connolly-cfrg-xwing-kem-11, section 5.8.1 (X-Wing).
   */
  toPem(): string;
}

/**
 * A parsed secret key. Every export returns a copy that the caller must wipe; strings cannot be
 * wiped. After `erase` every method except `erase` throws CLOSED.
 */
export interface SecretKey {
  readonly algorithm: Algorithm;
  readonly publicKey: PublicKey;

  /**
   * Returns the expanded form of FIPS 203, 204 or 205, for ECDSA the scalar, for X-Wing the seed;
   * `secretKeyBytes` long.
   *
   * OpenSSL cannot export this form of an ML-DSA or ML-KEM key that has a seed. Its provider then derives it from the
   * seed in JavaScript on the calling thread, which takes 0.4 to 3 ms.
   */
  exportRaw(): Uint8Array;

  /** Returns the seed of an ML-DSA, ML-KEM or X-Wing key, or undefined when the key was imported without one. */
  exportSeed(): Uint8Array | undefined;

  /**
   * Returns PKCS#8 in PEM: the seed form if there is a seed (RFC 9881 and 9935, section 6), otherwise
   * the expanded form. For SLH-DSA it holds the raw secret key (RFC 9909), for ECDSA also the public key (RFC 5915), for
   * X-Wing the bare seed (draft-connolly-cfrg-xwing-kem-11, section 5.8.2).
   */
  toPem(): string;

  /**
   * Makes the key unusable and overwrites our bytes. Operations that are running finish. The native provider
   * overwrites the key when the last of them ends, and OpenSSL wipes its own copy when the garbage collector frees it.
   * JavaScript cannot guarantee that no other copy exists.
   */
  erase(): void;
}

export interface KeyPair {
  readonly publicKey: PublicKey;
  readonly secretKey: SecretKey;
}

/** A public key from outside: raw bytes, or SubjectPublicKeyInfo in PEM. */
export type PublicKeyMaterial = { readonly raw: Uint8Array } | { readonly pem: string };

/** A secret key from outside: the expanded form, the seed, or PKCS#8 in PEM or DER. */
export type SecretKeyMaterial =
  | { readonly raw: Uint8Array }
  | { readonly seed: Uint8Array }
  | { readonly pem: string }
  | { readonly der: Uint8Array };

/** Options of signing and verifying. A name that is not listed here is refused. */
export interface SignatureOptions {
  /**
   * 0 to 255 bytes that bind the signature to one use (FIPS 204, section 5.2; FIPS 205, section 10.2).
   * Default: empty. Refused for ECDSA, which has no context.
   */
  readonly context?: Uint8Array | undefined;

  /**
   * ECDSA only: a DER SEQUENCE (RFC 3279, section 2.2.3), or the 64 bytes r ‖ s of IEEE P1363.
   * Default: "der".
   */
  readonly ecdsaEncoding?: EcdsaEncoding | undefined;
}

export type EcdsaEncoding = "der" | "ieee-p1363";

export interface Encapsulation {
  /** `ciphertextBytes` long; goes to the owner of the secret key. */
  readonly ciphertext: Uint8Array;
  /** 32 bytes. The caller wipes it after use. */
  readonly sharedSecret: Uint8Array;
}

/**
 * Computes μ, the message representative of ML-DSA, while the message arrives. It needs the memory of
 * one hash state for a message of any length. It runs on the calling thread and may be dropped.
 */
export interface MuHash {
  /**
   * Takes the next bytes of the message, which the caller may overwrite afterwards.
   *
   * @throws INVALID_ARGUMENT; CLOSED after `digest`
   */
  update(chunk: Uint8Array): void;

  /**
   * Ends the message.
   *
   * @returns μ, 64 bytes, for `signMu`.
   * @throws CLOSED when called again
   */
  digest(): Uint8Array;
}

/**
 * Post-quantum cryptography behind one interface. All providers treat bad input alike, whatever
 * their library does: import refuses bad key material (INVALID_KEY), calls refuse other bad input
 * (INVALID_ARGUMENT), and `verify` returns false for any wrong signature. Long operations run off
 * the event loop. A provider never falls back to another one.
 */
export interface CryptoProvider {
  readonly name: ProviderName;
  /**
   * The libraries that do the work: "OpenSSL 3.5.8", or "AWS-LC 5.12.0 (AVX2), OpenSSL 3.5.8", the first for ML-DSA and
   * ML-KEM, the second for the rest.
   */
  readonly version: string;
  /**
   * The code that computes ML-DSA and ML-KEM on this processor: "AVX2", "NEON" or "portable". Undefined for a library
   * that does not tell.
   */
  readonly cpuPath: string | undefined;
  /**
   * The same provider, for work of many pieces, such as a batch. It lets work wait longer before it refuses it
   * (CryptoBusyError, see work-queue.ts).
   */
  readonly unbounded: CryptoProvider;
  /**
   * The same provider, for the server's own work, which all callers need. That work is charged to no caller, is never
   * refused and goes first. Use it only for work whose amount callers cannot control.
   */
  readonly system: CryptoProvider;

  /**
   * Generates a key pair from fresh randomness (FIPS 203, section 7.1; FIPS 204, section 5.1;
   * FIPS 205, section 10.1; FIPS 186-5, appendix A.2; draft-connolly-cfrg-xwing-kem-11, section 5.2).
   *
   * @throws INVALID_ARGUMENT for an unknown algorithm
   */
  generateKeyPair(algorithm: Algorithm): Promise<KeyPair>;

  /**
   * Parses and checks a public key. An ML-KEM key, also the one in an X-Wing key, passes the modulus check of
   * FIPS 203, section 7.2; an ECDSA point must be on the curve. PEM must be the one strict DER form of its standard.
   *
   * @throws INVALID_KEY, INVALID_ARGUMENT
   */
  importPublicKey(algorithm: Algorithm, material: PublicKeyMaterial): PublicKey;

  /**
   * Parses a secret key and checks that it is consistent. For an expanded key the check derives or
   * uses its public half: some milliseconds, for SLH-DSA up to seconds, off the event loop. No check
   * can detect an altered K of ML-DSA, z of ML-KEM or SK.prf of SLH-DSA, because the result is another
   * valid key with the same public key.
   *
   * @throws INVALID_KEY, INVALID_ARGUMENT; UNSUPPORTED for the seed of an algorithm without seeds
   */
  importSecretKey(algorithm: Algorithm, material: SecretKeyMaterial): Promise<SecretKey>;

  /**
   * Signs the message itself, not a digest, with fresh randomness (the hedged form of FIPS 204,
   * section 3.4, and FIPS 205, section 9.2): two signatures of one message differ.
   *
   * @param message any length; copied before the call returns its promise.
   * @returns `signatureBytes` bytes; for ECDSA see `ecdsaEncoding`.
   * @throws INVALID_ARGUMENT, CLOSED
   */
  sign(secretKey: SecretKey, message: Uint8Array, options?: SignatureOptions): Promise<Uint8Array>;

  /**
   * Starts μ of a message that need not be in memory, or where the secret key is (FIPS 204, section
   * 6.2: another module may compute it). `signMu` turns μ into the plain signature of that message
   * and context, which every ML-DSA verifier accepts.
   *
   * @param publicKey the public key of the signing key: its hash is part of μ.
   * @param options.context as for `sign`; 0 to 255 bytes.
   * @throws INVALID_ARGUMENT, also for keys that are not ML-DSA; CLOSED
   */
  startMu(publicKey: PublicKey, options?: Pick<SignatureOptions, "context">): MuHash;

  /**
   * Signs a μ that was computed elsewhere (FIPS 204, algorithm 7 from line 7 on), hedged like `sign`.
   * The native provider does it like `sign`. OpenSSL supports it from 3.5 on, but node:crypto has no option for it, so
   * for the provider "openssl" @noble/post-quantum signs on a worker thread, which takes 40 times as long.
   *
   * The pitfall: μ does not show the message, its context or its key. A caller of this function can
   * sign anything under any context, also in the pre-hashed form of FIPS 204, section 5.4. μ of
   * another public key gives, without an error, a signature that no verifier accepts.
   *
   * @param mu 64 bytes, as `MuHash.digest` returns them; copied before the call returns its promise.
   * @returns `signatureBytes` bytes.
   * @throws INVALID_ARGUMENT, also for keys that are not ML-DSA; CLOSED
   */
  signMu(secretKey: SecretKey, mu: Uint8Array): Promise<Uint8Array>;

  /**
   * Verifies a signature (FIPS 204, section 5.3; FIPS 205, section 10.3; FIPS 186-5, section 6.4.2).
   * A signature of the wrong length or in another encoding gives false, not an error. ECDSA
   * signatures are malleable: if (r, s) is valid, so is (r, n − s).
   *
   * @throws INVALID_ARGUMENT, CLOSED
   */
  verify(
    publicKey: PublicKey,
    message: Uint8Array,
    signature: Uint8Array,
    options?: SignatureOptions,
  ): Promise<boolean>;

  /**
   * Generates a shared secret and its ciphertext for the owner of an ML-KEM key (FIPS 203, section 7.2) or of an
   * X-Wing key (draft-connolly-cfrg-xwing-kem-11, section 5.4).
   *
   * @throws INVALID_ARGUMENT, CLOSED
   */
  encapsulate(publicKey: PublicKey): Promise<Encapsulation>;

  /**
   * Recovers the shared secret from a ciphertext (FIPS 203, section 7.3; draft-connolly-cfrg-xwing-kem-11, section
   * 5.5).
   *
   * The pitfall: this SUCCEEDS on a wrong ciphertext of the right length and returns another,
   * pseudo-random secret (implicit rejection). Only a later step, such as a MAC under the secret,
   * shows whether both sides agree. That includes an X-Wing ciphertext whose X25519 half is a point of low order, which
   * Go and the Web Crypto API refuse: the draft has no such check.
   *
   * @returns 32 bytes. The caller wipes them after use.
   * @throws INVALID_ARGUMENT, also when the ciphertext is not `ciphertextBytes` long; CLOSED
   */
  decapsulate(secretKey: SecretKey, ciphertext: Uint8Array): Promise<Uint8Array>;

  /** SHA-256 (FIPS 180-4, section 6.2) on the calling thread; 32 bytes. */
  sha256(message: Uint8Array): Uint8Array;

  /** Stops workers and refuses further calls. Running calls finish or are rejected with CLOSED. */
  close(): Promise<void>;
}
