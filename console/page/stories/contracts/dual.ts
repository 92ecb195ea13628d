/**
 * ECDSA and composite signatures in the browser: @noble/curves and @noble/post-quantum, loaded on first use.
 */
import { verifyHere } from "../../algorithms.ts";
import { toUtf8 } from "../../values.ts";

/** The library that verifies ECDSA in the browser, as the page names it. */
export const curveLibrary = "@noble/curves";

/** FIPS 204, table 2: ML-DSA-65. */
const mldsaSignatureBytes = 3309;
const mldsaKeyBytes = 1952;
/** draft-ietf-lamps-pq-composite-sigs, sections 3.2 and 6. */
const prefix = toUtf8("CompositeAlgorithmSignatures2025");
const label = toUtf8("COMPSIG-MLDSA65-ECDSA-P256-SHA512");

/** The results for two signatures. */
export interface Halves {
  readonly ecdsaValid: boolean;
  readonly mldsaValid: boolean;
}

/** Verifies ECDSA with secp256r1 and SHA-256 (FIPS 186-5, section 6.4.2); the signature is in DER. */
export async function verifyEcdsa(
  signature: Uint8Array,
  message: Uint8Array,
  publicKey: Uint8Array,
): Promise<boolean> {
  const { p256 } = await import("@noble/curves/nist.js");
  try {
    // Like FIPS 186-5, the server accepts high and low s.
    return p256.verify(signature, message, publicKey, { format: "der", lowS: false });
  } catch {
    // A malformed signature or key counts as not valid.
    return false;
  }
}

/**
 * Verifies both halves of a composite signature (section 3.3, with an empty context) and reports each one
 * separately.
 */
export async function verifyComposite(
  signature: Uint8Array,
  message: Uint8Array,
  publicKey: Uint8Array,
): Promise<Halves> {
  const { sha512 } = await import("@noble/hashes/sha2.js");
  const represented = Uint8Array.of(...prefix, ...label, 0, ...sha512(message));
  const { mldsa, ecdsa } = splitComposite(signature);
  return {
    mldsaValid: await verifyHere("ML-DSA-65", mldsa, represented, takeMldsaKey(publicKey), label),
    ecdsaValid: await verifyEcdsa(ecdsa, represented, publicKey.subarray(mldsaKeyBytes)),
  };
}

/** The halves of a composite signature. */
export function splitComposite(signature: Uint8Array): {
  readonly mldsa: Uint8Array;
  readonly ecdsa: Uint8Array;
} {
  return {
    mldsa: signature.subarray(0, mldsaSignatureBytes),
    ecdsa: signature.subarray(mldsaSignatureBytes),
  };
}

/** The ML-DSA half of a composite public key. */
export function takeMldsaKey(compositeKey: Uint8Array): Uint8Array {
  return compositeKey.subarray(0, mldsaKeyBytes);
}

/** The message's other valid ECDSA signature: if s is valid, so is n − s, and it needs no secret key. */
export async function mirrorEcdsa(signature: Uint8Array): Promise<Uint8Array> {
  const { p256 } = await import("@noble/curves/nist.js");
  const { r, s } = p256.Signature.fromBytes(signature, "der");
  return new p256.Signature(r, p256.Point.Fn.ORDER - s).toBytes("der");
}
