/** Sizes of the classical algorithms that post-quantum ones replace, in bytes, with their sources. */

/** A bar of a chart of sizes. */
export interface SizeRow {
  readonly label: string;
  readonly bytes: number;
  /** Classical counterparts are drawn lighter. */
  readonly isClassical?: boolean;
}

/** RFC 8032, section 5.1: Ed25519. FIPS 186-5 with P-256: r and s; the key is an uncompressed point (SEC 1, 2.3.3). */
export const classicalSignatures: readonly SizeRow[] = [
  { label: "Ed25519", bytes: 64, isClassical: true },
  { label: "ECDSA P-256", bytes: 64, isClassical: true },
];

export const classicalSigningKeys: readonly SizeRow[] = [
  { label: "Ed25519", bytes: 32, isClassical: true },
  { label: "ECDSA P-256", bytes: 65, isClassical: true },
];

/** RFC 7748, section 5: each side of X25519 sends one public key. */
export const classicalExchange: readonly SizeRow[] = [{ label: "X25519", bytes: 32, isClassical: true }];

/** A classical algorithm that a large quantum computer would break, with the sizes of its values in bytes. */
export interface ClassicalAlgorithm {
  readonly name: string;
  readonly standard: string;
  /** Strength against classical computers (SP 800-57 part 1, table 2). */
  readonly classicalBits: number;
  readonly publicKeyBytes: number;
  readonly secretKeyBytes: number;
  readonly signatureBytes?: number;
  readonly ciphertextBytes?: number;
}

/**
 * Of RSA, the public key is the modulus and the exponent 65537 (RFC 8017, section 3.1), the secret key the modulus and
 * the private exponent (section 3.2), and a signature is as long as the modulus (section 8).
 */
export const classicalAlgorithms: readonly ClassicalAlgorithm[] = [
  {
    name: "Ed25519",
    standard: "RFC 8032",
    classicalBits: 128,
    publicKeyBytes: 32,
    secretKeyBytes: 32,
    signatureBytes: 64,
  },
  {
    name: "ECDSA P-256",
    standard: "FIPS 186-5",
    classicalBits: 128,
    publicKeyBytes: 65,
    secretKeyBytes: 32,
    signatureBytes: 64,
  },
  {
    name: "RSA-2048",
    standard: "RFC 8017",
    classicalBits: 112,
    publicKeyBytes: 259,
    secretKeyBytes: 512,
    signatureBytes: 256,
  },
  {
    name: "RSA-3072",
    standard: "RFC 8017",
    classicalBits: 128,
    publicKeyBytes: 387,
    secretKeyBytes: 768,
    signatureBytes: 384,
  },
  {
    name: "X25519",
    standard: "RFC 7748",
    classicalBits: 128,
    publicKeyBytes: 32,
    secretKeyBytes: 32,
    // The other side sends its own public key.
    ciphertextBytes: 32,
  },
];
