/** CMS content digests, and the object identifiers that signing and verifying share. */
import { createHash, type Hash } from "node:crypto";
import { type SignatureAlgorithm, signatureAlgorithms } from "../../src/crypto/algorithms.ts";

/** Object identifiers of RFC 5652, sections 4, 5.1 and 11, and of RFC 6211. */
export const oids = {
  data: "1.2.840.113549.1.7.1",
  signedData: "1.2.840.113549.1.7.2",
  contentType: "1.2.840.113549.1.9.3",
  messageDigest: "1.2.840.113549.1.9.4",
  signingTime: "1.2.840.113549.1.9.5",
  algorithmProtection: "1.2.840.113549.1.9.52",
} as const;

/** A content digest and its length in bytes. */
export interface CmsDigest {
  readonly oid: string;
  readonly bytes: number;
  start(): Hash;
}

/**
 * RFC 5754, section 2 (SHA-2); RFC 9688, section 2 (SHA-3); RFC 8702, section 3.1 (SHAKE, of these lengths).
 */
const digests = {
  sha256: digest("sha256", 1, 32),
  sha384: digest("sha384", 2, 48),
  sha512: digest("sha512", 3, 64),
  sha3_256: digest("sha3-256", 8, 32),
  sha3_384: digest("sha3-384", 9, 48),
  sha3_512: digest("sha3-512", 10, 64),
  shake128: digest("shake128", 11, 32),
  shake256: digest("shake256", 12, 64),
};

/**
 * Selects the digest for signing: SHA-512 for ML-DSA, which every implementation must support (RFC 9882,
 * section 3.3), or the digest of the SLH-DSA parameter set (RFC 9814, section 4).
 */
export function selectDigest(algorithm: SignatureAlgorithm): CmsDigest {
  if (!algorithm.startsWith("SLH-DSA-")) return digests.sha512;
  const isSmall = algorithm.includes("-128");
  if (algorithm.includes("-SHAKE-")) return isSmall ? digests.shake128 : digests.shake256;
  return isSmall ? digests.sha256 : digests.sha512;
}

/**
 * Finds the digest of a signature being verified.
 *
 * @returns undefined for an unknown digest, or one with weaker collision resistance than the algorithm: below
 *   256, 384 or 512 bits for categories 1 and 2, 3, or 5
 */
export function findDigest(oid: string, algorithm: SignatureAlgorithm): CmsDigest | undefined {
  const { nistLevel = 1 } = signatureAlgorithms[algorithm];
  const minBytes = nistLevel <= 2 ? 32 : nistLevel === 3 ? 48 : 64;
  return Object.values(digests).find((known) => known.oid === oid && known.bytes >= minBytes);
}

/**
 * Finds the signature algorithm of an object identifier.
 *
 * @returns undefined for algorithms that are not supported in CMS
 */
export function findSignatureAlgorithm(oid: string): SignatureAlgorithm | undefined {
  const found = Object.values(signatureAlgorithms).find((known) => known.oid === oid);
  return found?.family === "ECDSA" ? undefined : found?.name;
}

function digest(name: string, arc: number, bytes: number): CmsDigest {
  const start = () => createHash(name, name.startsWith("shake") ? { outputLength: bytes } : {});
  return { oid: `2.16.840.1.101.3.4.2.${arc}`, bytes, start };
}
