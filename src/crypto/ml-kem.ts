import { sha3_256 } from "@noble/hashes/sha3.js";
import { type KemAlgorithm, kemAlgorithms, type MlKemAlgorithm } from "./algorithms.ts";
import { equalBytes } from "./bytes.ts";
import { invalidKey } from "./crypto-error.ts";

/** The modulus q of FIPS 203, section 2.4. */
const q = 3329;

/**
 * Checks an encapsulation key, as FIPS 203, section 7.2, requires before every use: all coefficients are
 * below q, so that decoding and encoding give the same bytes.
 *
 * @param algorithm the name for error messages: a hybrid checks its ML-KEM half under its own name
 * @param encapsulationKey of the right length
 * @throws INVALID_KEY
 */
export function checkEncapsulationKey(algorithm: KemAlgorithm, encapsulationKey: Uint8Array): void {
  const vectorBytes = encapsulationKey.length - 32;
  if (!hasReducedCoefficients(encapsulationKey.subarray(0, vectorBytes))) {
    throw invalidKey(`the ${algorithm} public key has a coefficient of ${q} or more`);
  }
}

/**
 * Checks an expanded decapsulation key dkPKE ‖ ek ‖ H(ek) ‖ z: the hash check of FIPS 203, section 7.3, and
 * that the coefficients of both halves are below q.
 *
 * @param decapsulationKey of the right length
 * @throws INVALID_KEY
 */
export function checkDecapsulationKey(algorithm: MlKemAlgorithm, decapsulationKey: Uint8Array): void {
  const { secretKeyBytes, publicKeyBytes } = kemAlgorithms[algorithm];
  const vectorBytes = secretKeyBytes - publicKeyBytes - 64;
  if (!hasReducedCoefficients(decapsulationKey.subarray(0, vectorBytes))) {
    throw invalidKey(`the ${algorithm} secret key has a coefficient of ${q} or more`);
  }
  const encapsulationKey = decapsulationKey.subarray(vectorBytes, vectorBytes + publicKeyBytes);
  checkEncapsulationKey(algorithm, encapsulationKey);
  const hash = decapsulationKey.subarray(vectorBytes + publicKeyBytes, secretKeyBytes - 32);
  if (!equalBytes(sha3_256(encapsulationKey), hash)) {
    throw invalidKey(`the ${algorithm} secret key does not contain the hash of its public key`);
  }
}

/** Returns whether all 12-bit little-endian integers (FIPS 203, algorithm 6) are below q. */
function hasReducedCoefficients(encoded: Uint8Array): boolean {
  const view = new DataView(encoded.buffer, encoded.byteOffset, encoded.byteLength);
  let reduced = true;
  for (let i = 0; i < view.byteLength; i += 3) {
    const low = view.getUint16(i, true) & 0xfff;
    const high = view.getUint16(i + 1, true) >> 4;
    reduced = reduced && low < q && high < q;
  }
  return reduced;
}
