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
