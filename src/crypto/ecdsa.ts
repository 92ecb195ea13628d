import { invalidKey } from "./crypto-error.ts";

/** The order n of secp256r1 (SEC 2, section 2.4.2). */
const groupOrder = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/**
 * Checks that a secret key is from 1 to n − 1 (FIPS 186-5, section 6.2). OpenSSL does not: it accepts any 32
 * bytes and derives the point at infinity from 0.
 *
 * @param scalar 32 bytes, big-endian
 * @throws INVALID_KEY
 */
export function checkScalar(scalar: Uint8Array): void {
  const value = BigInt(`0x${scalar.toHex()}`);
  if (value > 0n && value < groupOrder) return;
  throw invalidKey("the ECDSA-P256 secret key must be from 1 to the group order minus 1");
}

/**
 * Checks that a public key is an uncompressed point: OpenSSL also accepts the hybrid form of X9.62, which has
 * the same length. The engine checks that the point is on the curve.
 *
 * @param point 65 bytes
 * @throws INVALID_KEY
 */
export function checkPointForm(point: Uint8Array): void {
  if (point[0] === 0x04) return;
  throw invalidKey("the ECDSA-P256 public key must be an uncompressed point, which starts with 04");
}
