import { invalidKey } from "./crypto-error.ts";

/** The orders n of secp256r1 and secp384r1 (SEC 2, sections 2.4.2 and 2.5.1). */
const groupOrders = {
  "ECDSA-P256": 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  "ECDSA-P384":
    0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
} as const;

type Ecdsa = keyof typeof groupOrders;

/**
 * Checks that a secret key is from 1 to n − 1 (FIPS 186-5, section 6.2). OpenSSL does not: it accepts any
 * bytes of the right length and derives the point at infinity from 0.
 *
 * @param scalar 32 or 48 bytes, big-endian
 * @throws INVALID_KEY
 */
export function checkScalar(algorithm: Ecdsa, scalar: Uint8Array): void {
  const value = BigInt(`0x${scalar.toHex()}`);
  if (value > 0n && value < groupOrders[algorithm]) return;
  throw invalidKey(`the ${algorithm} secret key must be from 1 to the group order minus 1`);
}

/**
 * Checks that a public key is an uncompressed point: OpenSSL also accepts the hybrid form of X9.62, which has
 * the same length. The engine checks that the point is on the curve.
 *
 * @param point 65 or 97 bytes
 * @throws INVALID_KEY
 */
export function checkPointForm(algorithm: Ecdsa, point: Uint8Array): void {
  if (point[0] === 0x04) return;
  throw invalidKey(`the ${algorithm} public key must be an uncompressed point, which starts with 04`);
}
