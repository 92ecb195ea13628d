/** Sizes in bytes of the classical algorithms that post-quantum ones replace, with sources. */

/** A bar in a size chart. */
export interface SizeRow {
  readonly label: string;
  readonly bytes: number;
  /** Classical counterparts are drawn lighter. */
  readonly isClassical?: boolean;
}

/** A classical algorithm that a large quantum computer would break, and its value sizes in bytes. */
export interface ClassicalAlgorithm {
  readonly name: string;
  readonly standard: string;
  readonly publicKeyBytes: number;
  readonly secretKeyBytes: number;
  readonly signatureBytes?: number;
  readonly ciphertextBytes?: number;
}

/**
 * ECDSA (FIPS 186-5): a signature is r and s, the key an uncompressed point (SEC 1, 2.3.3). For RSA, the
 * public key is the modulus and the exponent 65537 (RFC 8017, section 3.1), the secret key the modulus and
 * the private exponent (section 3.2), and a signature is as long as the modulus (section 8).
 */
export const classicalAlgorithms: readonly ClassicalAlgorithm[] = [
  { name: "Ed25519", standard: "RFC 8032", publicKeyBytes: 32, secretKeyBytes: 32, signatureBytes: 64 },
  { name: "ECDSA P-256", standard: "FIPS 186-5", publicKeyBytes: 65, secretKeyBytes: 32, signatureBytes: 64 },
  { name: "RSA-2048", standard: "RFC 8017", publicKeyBytes: 259, secretKeyBytes: 512, signatureBytes: 256 },
  { name: "RSA-3072", standard: "RFC 8017", publicKeyBytes: 387, secretKeyBytes: 768, signatureBytes: 384 },
  // Its answer is the other side's public key.
  { name: "X25519", standard: "RFC 7748", publicKeyBytes: 32, secretKeyBytes: 32, ciphertextBytes: 32 },
];

/** Selects algorithms as chart rows. */
function listSizes(field: "publicKeyBytes" | "signatureBytes", ...names: readonly string[]): SizeRow[] {
  return classicalAlgorithms
    .filter(({ name }) => names.includes(name))
    .map(({ name, [field]: bytes = 0 }) => ({ label: name, bytes, isClassical: true }));
}

export const classicalSignatures = listSizes("signatureBytes", "Ed25519", "ECDSA P-256");
export const classicalSigningKeys = listSizes("publicKeyBytes", "Ed25519", "ECDSA P-256");
/** RFC 7748, section 5: each side sends one public key. */
export const classicalExchange = listSizes("publicKeyBytes", "X25519");
