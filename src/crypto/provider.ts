import type { Algorithm } from "./algorithms.ts";

export type ProviderName = "native" | "openssl";

/**
 * A parsed public key. It belongs to the provider that created it; other providers reject it. To move a key,
 * export it from one provider and import it into the other.
 */
export interface PublicKey {
  readonly algorithm: Algorithm;

  /**
   * Returns a copy of the raw bytes, `publicKeyBytes` long: the form of FIPS 203, 204 or 205; for ECDSA, the
   * uncompressed point (SEC 1, section 2.3.3); for X-Wing, the ML-KEM-768 key followed by the X25519 key
   * (draft-connolly-cfrg-xwing-kem-11, section 5.2); for composites, the ML-DSA key followed by the classical
   * key (draft-ietf-lamps-pq-composite-sigs-19, section 4.1).
   */
  exportRaw(): Uint8Array;

  /**
   * Returns SubjectPublicKeyInfo in PEM: RFC 9881 (ML-DSA), 9935 (ML-KEM), 9909 (SLH-DSA), 5480 (ECDSA),
   * draft-connolly-cfrg-xwing-kem-11, section 5.8.1 (X-Wing), draft-ietf-lamps-pq-composite-sigs-19,
   * section 5 (composites).
   */
  toPem(): string;
}

/**
 * A parsed secret key. Every export returns a copy that the caller must wipe; strings cannot be wiped. After
 * `erase`, every method except `erase` throws CLOSED.
 */
export interface SecretKey {
  readonly algorithm: Algorithm;
  readonly publicKey: PublicKey;

  /**
   * Returns the expanded form of FIPS 203, 204 or 205, the scalar for ECDSA, the seed for X-Wing, or for
   * composites the ML-DSA seed followed by the classical key (draft-ietf-lamps-pq-composite-sigs-19,
   * section 4.2); `secretKeyBytes` long.
   *
   * OpenSSL cannot export this form of an ML-DSA or ML-KEM key that has a seed. The OpenSSL provider then
   * derives it from the seed in JavaScript on the calling thread, which takes 0.4 to 3 ms.
   */
  exportRaw(): Uint8Array;

  /**
   * Returns the seed of an ML-DSA, ML-KEM or X-Wing key, or undefined if the key was imported without one.
   */
  exportSeed(): Uint8Array | undefined;

  /**
   * Returns PKCS#8 in PEM: the seed form if the key has a seed (RFC 9881 and 9935, section 6), otherwise the
   * expanded form. SLH-DSA documents hold the raw secret key (RFC 9909), ECDSA documents also the public key
   * (RFC 5915), X-Wing documents the bare seed (draft-connolly-cfrg-xwing-kem-11, section 5.8.2), and composite
   * documents the bytes of `exportRaw` (draft-ietf-lamps-pq-composite-sigs-19, section 5.3).
   */
  toPem(): string;

  /**
   * Makes the key unusable and overwrites our copy of its bytes. Running operations finish first. The native
   * provider overwrites the key when the last operation ends; OpenSSL wipes its own copy when the garbage
   * collector frees it. JavaScript cannot guarantee that no other copy exists.
   */
  erase(): void;
}

export interface KeyPair {
  readonly publicKey: PublicKey;
  readonly secretKey: SecretKey;
}

/** Public key input: raw bytes, or SubjectPublicKeyInfo in PEM. */
export type PublicKeyMaterial = { readonly raw: Uint8Array } | { readonly pem: string };

/** Secret key input: the expanded form, the seed, or PKCS#8 in PEM or DER. */
export type SecretKeyMaterial =
  | { readonly raw: Uint8Array }
  | { readonly seed: Uint8Array }
  | { readonly pem: string }
  | { readonly der: Uint8Array };

/** Options for signing and verification. Other option names are rejected. */
export interface SignatureOptions {
  /**
   * Binds the signature to one use (FIPS 204, section 5.2; FIPS 205, section 10.2;
   * draft-ietf-lamps-pq-composite-sigs-19, section 2.2); 0 to 255 bytes. Default: empty. Rejected for ECDSA,
   * which has no context.
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
  /** `ciphertextBytes` long; send it to the owner of the secret key. */
  readonly ciphertext: Uint8Array;
  /** 32 bytes. The caller wipes it after use. */
  readonly sharedSecret: Uint8Array;
}

/**
 * Computes the representative of a message while the message arrives: μ for ML-DSA, M′ for composites. It uses
 * the memory of one hash state, whatever the length of the message. It runs on the calling thread and may be
 * abandoned.
 */
export interface RepresentativeHash {
  /**
   * Adds the next bytes of the message. The caller may overwrite them afterwards.
   *
   * @throws INVALID_ARGUMENT; CLOSED after `digest`
   */
  update(chunk: Uint8Array): void;

  /**
   * Finishes the message.
   *
   * @returns the representative, for `signRepresentative`: 64 bytes for ML-DSA, at most 410 for composites
   * @throws CLOSED if called again
   */
  digest(): Uint8Array;
}

/**
 * The interface of all post-quantum cryptography providers. They all treat bad input alike, whatever their
 * library does: import rejects bad key material (INVALID_KEY), calls reject other bad input
 * (INVALID_ARGUMENT), and `verify` returns false for any wrong signature. Long operations run off the event
 * loop. A provider never falls back to a different one.
 */
export interface CryptoProvider {
  readonly name: ProviderName;
  /**
   * The underlying libraries: "OpenSSL 3.5.8", or "AWS-LC 5.12.0 (AVX2), OpenSSL 3.5.8", where AWS-LC does
   * ML-DSA and ML-KEM and OpenSSL the rest.
   */
  readonly version: string;
  /**
   * The ML-DSA and ML-KEM code selected for this processor: "AVX2", "NEON" or "portable". Undefined for a
   * library that does not report one.
   */
  readonly cpuPath: string | undefined;
  /**
   * The same provider for bulk work, such as a batch. Its work may wait longer before it is rejected
   * (CryptoBusyError, see work-queue.ts).
   */
  readonly unbounded: CryptoProvider;
  /**
   * The same provider for the server's own work, on which all callers depend. This work is charged to no
   * caller, is never rejected and goes first. Use it only for work whose amount callers cannot influence.
   */
  readonly system: CryptoProvider;
  /**
   * The same provider for bulk work that several callers share. All such work counts for one caller, so it takes
   * turns with the work of each call, and goes on when the call that began it ends.
   */
  readonly shared: CryptoProvider;

  /**
   * Generates a key pair from fresh randomness (FIPS 203, section 7.1; FIPS 204, section 5.1;
   * FIPS 205, section 10.1; FIPS 186-5, appendix A.2; draft-connolly-cfrg-xwing-kem-11, section 5.2).
   *
   * @throws INVALID_ARGUMENT for an unknown algorithm
   */
  generateKeyPair(algorithm: Algorithm): Promise<KeyPair>;

  /**
   * Parses and checks a public key. An ML-KEM key, including the one in an X-Wing key, must pass the modulus
   * check of FIPS 203, section 7.2; an ECDSA point must be on the curve. PEM must be the one strict DER form
   * of its standard.
   *
   * @throws INVALID_KEY, INVALID_ARGUMENT
   */
  importPublicKey(algorithm: Algorithm, material: PublicKeyMaterial): PublicKey;

  /**
   * Parses a secret key and checks its consistency. For an expanded key, the check derives or uses the public
   * half: some milliseconds, for SLH-DSA up to seconds, off the event loop. No check can detect a changed K
   * of ML-DSA, z of ML-KEM or SK.prf of SLH-DSA: the result is a different, valid key with the same public
   * key.
   *
   * @throws INVALID_KEY, INVALID_ARGUMENT; UNSUPPORTED for the seed of an algorithm without seeds
   */
  importSecretKey(algorithm: Algorithm, material: SecretKeyMaterial): Promise<SecretKey>;

  /**
   * Signs the message itself, not a digest, with fresh randomness (the hedged form of FIPS 204, section 3.4,
   * and FIPS 205, section 9.2), so two signatures of one message differ.
   *
   * @param message any length; copied before the call returns its promise
   * @returns `signatureBytes` bytes; for ECDSA, see `ecdsaEncoding`
   * @throws INVALID_ARGUMENT, CLOSED
   */
  sign(secretKey: SecretKey, message: Uint8Array, options?: SignatureOptions): Promise<Uint8Array>;

  /**
   * Starts computing the representative of a message, which need not fit in memory or be where the secret key
   * is: μ for ML-DSA (FIPS 204, section 6.2: another module may compute it), M′ for composites
   * (draft-ietf-lamps-pq-composite-sigs-19, section 3.2). `signRepresentative` turns it into an ordinary
   * signature of the message and context, which every verifier accepts.
   *
   * @param publicKey the signing key's public key, whose hash is part of μ
   * @param options.context as for `sign`; 0 to 255 bytes
   * @throws INVALID_ARGUMENT, including for keys other than ML-DSA and composites; CLOSED
   */
  startRepresentative(publicKey: PublicKey, options?: Pick<SignatureOptions, "context">): RepresentativeHash;

  /**
   * Signs a representative that was computed elsewhere (FIPS 204, algorithm 7 from line 7 on;
   * draft-ietf-lamps-pq-composite-sigs-19, section 3.2 from step 3 on), hedged like `sign`. The native provider
   * does so as fast as `sign`. OpenSSL supports μ from 3.5 on, but node:crypto has no option for it, so the
   * "openssl" provider uses @noble/post-quantum on a worker thread, which takes 40 times as long.
   *
   * Pitfall: μ does not reveal the message, its context or its key. A caller of this function can sign
   * anything under any context, including the pre-hashed form of FIPS 204, section 5.4. A μ for a different
   * public key gives, without an error, a signature that no verifier accepts.
   *
   * @param representative from `RepresentativeHash.digest`; copied before the call returns its promise
   * @returns `signatureBytes` bytes; at most as many if the signature ends with ECDSA
   * @throws INVALID_ARGUMENT, including for keys other than ML-DSA and composites, and for bytes that are not
   *   the representative of any message; CLOSED
   */
  signRepresentative(secretKey: SecretKey, representative: Uint8Array): Promise<Uint8Array>;

  /**
   * Verifies a signature of the message with this representative. For ML-DSA it runs in JavaScript on the
   * calling thread, some milliseconds: no library offers it.
   *
   * @throws INVALID_ARGUMENT, as for `signRepresentative`; CLOSED
   */
  verifyRepresentative(
    publicKey: PublicKey,
    representative: Uint8Array,
    signature: Uint8Array,
  ): Promise<boolean>;

  /**
   * Verifies a signature (FIPS 204, section 5.3; FIPS 205, section 10.3; FIPS 186-5, section 6.4.2). A
   * signature with the wrong length or encoding gives false, not an error. ECDSA signatures are malleable: if
   * (r, s) is valid, so is (r, n − s).
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
   * Generates a shared secret and its ciphertext for the owner of an ML-KEM key (FIPS 203, section 7.2) or an
   * X-Wing key (draft-connolly-cfrg-xwing-kem-11, section 5.4).
   *
   * @throws INVALID_ARGUMENT, CLOSED
   */
  encapsulate(publicKey: PublicKey): Promise<Encapsulation>;

  /**
   * Recovers the shared secret from a ciphertext (FIPS 203, section 7.3; draft-connolly-cfrg-xwing-kem-11,
   * section 5.5).
   *
   * Pitfall: this SUCCEEDS for a wrong ciphertext of the right length and returns a different, pseudo-random
   * secret (implicit rejection). Only a later step, such as a MAC under the secret, shows whether both sides
   * agree. That includes an X-Wing ciphertext whose X25519 half is a point of low order: Go and the Web
   * Crypto API reject it, but the draft has no such check.
   *
   * @returns 32 bytes; the caller wipes them after use
   * @throws INVALID_ARGUMENT, including for a ciphertext that is not `ciphertextBytes` long; CLOSED
   */
  decapsulate(secretKey: SecretKey, ciphertext: Uint8Array): Promise<Uint8Array>;

  /** Stops workers and rejects further calls. Running calls finish or are rejected with CLOSED. */
  close(): Promise<void>;
}
