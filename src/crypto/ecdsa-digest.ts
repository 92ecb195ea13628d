/** ECDSA over a digest that was computed elsewhere. Neither node:crypto nor our providers sign one. */
import { wipe } from "./bytes.ts";
import { invalidArgument } from "./crypto-error.ts";
import type { SecretKey } from "./provider.ts";

const digestBytes = 32;

/**
 * Signs a SHA-256 digest with a key on secp256r1 (FIPS 186-5, section 6.4.1), hedged, with the noble library on the
 * calling thread, which takes less than a millisecond.
 *
 * @param digest 32 bytes.
 * @returns a signature in DER (RFC 3279, section 2.2.3).
 * @throws INVALID_ARGUMENT; CLOSED
 */
export async function signEcdsaDigest(secretKey: SecretKey, digest: Uint8Array): Promise<Uint8Array> {
  if (secretKey.algorithm !== "ECDSA-P256")
    throw invalidArgument(`a digest needs an ECDSA-P256 key, not ${secretKey.algorithm}`);
  if (digest.length !== digestBytes)
    throw invalidArgument(`a SHA-256 digest has ${digestBytes} bytes, not ${digest.length}`);
  const scalar = secretKey.exportRaw();
  try {
    const { p256 } = await import("@noble/curves/nist.js");
    return p256.sign(digest, scalar, { prehash: false, lowS: false, extraEntropy: true, format: "der" });
  } finally {
    wipe(scalar);
  }
}
