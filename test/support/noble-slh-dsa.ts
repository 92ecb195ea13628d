/** SLH-DSA parameter sets from the noble library, to cross-check OpenSSL's signatures. */
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
import type { Signer } from "@noble/post-quantum/utils.js";
import type { SlhDsaAlgorithm } from "../../src/crypto/algorithms.ts";

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
