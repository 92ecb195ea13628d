/** Parameter sets of the noble library. It is plain JavaScript and does not guarantee constant time. */
import { type DSA, ml_dsa44, ml_dsa65, ml_dsa87 } from "@noble/post-quantum/ml-dsa.js";
import { ml_kem512, ml_kem768, ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import type { KEM } from "@noble/post-quantum/utils.js";
import type { Algorithm, MlDsaAlgorithm, MlKemAlgorithm } from "./algorithms.ts";

export const mlDsa: Readonly<Record<MlDsaAlgorithm, DSA>> = {
  "ML-DSA-44": ml_dsa44,
  "ML-DSA-65": ml_dsa65,
  "ML-DSA-87": ml_dsa87,
};

export const mlKem: Readonly<Record<MlKemAlgorithm, KEM>> = {
  "ML-KEM-512": ml_kem512,
  "ML-KEM-768": ml_kem768,
  "ML-KEM-1024": ml_kem1024,
};

/** Verifies a signature of the message with this μ (FIPS 204, algorithm 8 from line 8 on): 3 ms. */
export function verifyMu(
  algorithm: Algorithm,
  publicKey: Uint8Array,
  mu: Uint8Array,
  signature: Uint8Array,
): boolean {
  // Not isMlDsaAlgorithm: the package for browsers has this file, but not the table of all algorithms.
  const library: DSA | undefined = mlDsa[algorithm as MlDsaAlgorithm];
  if (library === undefined) throw new RangeError(`${algorithm} has no mu`);
  return library.internal.verify(signature, mu, publicKey, { externalMu: true });
}

/**
 * Derives the expanded secret key from its seed (FIPS 204, algorithm 6; FIPS 203, algorithm 16). The caller
 * wipes the result.
 */
export function expandSeed(algorithm: MlDsaAlgorithm | MlKemAlgorithm, seed: Uint8Array): Uint8Array {
  const parameterSet = { ...mlDsa, ...mlKem }[algorithm];
  return parameterSet.keygen(seed).secretKey;
}
