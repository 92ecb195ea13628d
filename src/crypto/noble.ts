import { type DSA, ml_dsa44, ml_dsa65, ml_dsa87 } from "@noble/post-quantum/ml-dsa.js";
import { ml_kem512, ml_kem768, ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import {
  slh_dsa_sha2_128f,
  slh_dsa_sha2_128s,
  slh_dsa_sha2_192f,
  slh_dsa_sha2_192s,
  slh_dsa_sha2_256f,
  slh_dsa_sha2_256s,
  slh_dsa_shake_128f,
  slh_dsa_shake_128s,
  slh_dsa_shake_192f,
  slh_dsa_shake_192s,
  slh_dsa_shake_256f,
  slh_dsa_shake_256s,
} from "@noble/post-quantum/slh-dsa.js";
import type { KEM, Signer } from "@noble/post-quantum/utils.js";
import type { MlDsaAlgorithm, MlKemAlgorithm, SlhDsaAlgorithm } from "./algorithms.ts";

export const mlDsa: Readonly<Record<MlDsaAlgorithm, DSA>> = {
  "ML-DSA-44": ml_dsa44,
  "ML-DSA-65": ml_dsa65,
  "ML-DSA-87": ml_dsa87,
};

export const slhDsa: Readonly<Record<SlhDsaAlgorithm, Signer>> = {
  "SLH-DSA-SHA2-128s": slh_dsa_sha2_128s,
  "SLH-DSA-SHA2-128f": slh_dsa_sha2_128f,
  "SLH-DSA-SHA2-192s": slh_dsa_sha2_192s,
  "SLH-DSA-SHA2-192f": slh_dsa_sha2_192f,
  "SLH-DSA-SHA2-256s": slh_dsa_sha2_256s,
  "SLH-DSA-SHA2-256f": slh_dsa_sha2_256f,
  "SLH-DSA-SHAKE-128s": slh_dsa_shake_128s,
  "SLH-DSA-SHAKE-128f": slh_dsa_shake_128f,
  "SLH-DSA-SHAKE-192s": slh_dsa_shake_192s,
  "SLH-DSA-SHAKE-192f": slh_dsa_shake_192f,
  "SLH-DSA-SHAKE-256s": slh_dsa_shake_256s,
  "SLH-DSA-SHAKE-256f": slh_dsa_shake_256f,
};

export const mlKem: Readonly<Record<MlKemAlgorithm, KEM>> = {
  "ML-KEM-512": ml_kem512,
  "ML-KEM-768": ml_kem768,
  "ML-KEM-1024": ml_kem1024,
};

/**
 * Derives the expanded secret key from its seed (FIPS 204, algorithm 6; FIPS 203, algorithm 16).
 * The caller wipes the result.
 */
export function expandSeed(algorithm: MlDsaAlgorithm | MlKemAlgorithm, seed: Uint8Array): Uint8Array {
  const parameterSet = { ...mlDsa, ...mlKem }[algorithm];
  return parameterSet.keygen(seed).secretKey;
}
