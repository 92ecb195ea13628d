import { hash } from "node:crypto";
import {
  algorithms,
  kemAlgorithms,
  type MlDsaAlgorithm,
  type MlKemAlgorithm,
  mlDsaNames,
  mlKemNames,
} from "../algorithms.ts";
import { CryptoError } from "../crypto-error.ts";
import type { NativeAddon, NativeSecretKey } from "./addon.ts";

/**
 * SHA-256 over the public key, the expanded secret key and the result of one operation, for the seed 00 01 02
 * …, which RFC 9881 and RFC 9935 use in appendix C. For ML-DSA, the operation is a signature without
 * randomness (FIPS 204, section 3.4). For ML-KEM, it is the decapsulation of zeros, which is rejected
 * implicitly (FIPS 203, algorithm 18, line 9) and therefore includes an encryption.
 * test/crypto/native.test.ts compares the values with other libraries' results.
 */
export const knownAnswers: Readonly<Record<MlDsaAlgorithm | MlKemAlgorithm, string>> = {
  "ML-DSA-44": "71c613c107f279db99ee8b14fd28b9089ae6e1cd7761b00eb228929c23911aa4",
  "ML-DSA-65": "c5bb960e76edb0b8b424c893cd1cda71466ef4ef05a114b8cd3ac31f39666d3e",
  "ML-DSA-87": "519f246004054f32b16d67867a9a9ae7d20425b03cdeb193bc67ce415b9cb12b",
  "ML-KEM-512": "cc3dc69caf84604c18f882778955a3100b66c6d83e6ffe7319243e89edf094fc",
  "ML-KEM-768": "84754e80538d2847ec274c096e79f874b53be556544d7fe15dd3878f4c16d93d",
  "ML-KEM-1024": "64fa90dde80b6bed9480bdeee4449d4e03133870fde1158dd69c8ec050df6bfe",
};

/** The message signed in the ML-DSA known answers. */
export const knownMessage = new TextEncoder().encode("known answer");
export const knownContext = new TextEncoder().encode("qsp");

/**
 * Rejects a library that computes wrong results on this processor. Tests every parameter set in about 3 ms.
 *
 * @throws SELF_TEST_FAILED
 */
export async function testKnownAnswers(addon: NativeAddon): Promise<void> {
  const results = await Promise.all([
    ...mlDsaNames.map((algorithm) => isMlDsaRight(addon, algorithm)),
    ...mlKemNames.map((algorithm) => isMlKemRight(addon, algorithm)),
  ]);
  if (results.every(Boolean)) return;
  const problem = `AWS-LC ${addon.libraryVersion()} (${addon.cpuPath()}) failed a known-answer test`;
  throw new CryptoError("SELF_TEST_FAILED", problem);
}

async function isMlDsaRight(addon: NativeAddon, algorithm: MlDsaAlgorithm): Promise<boolean> {
  const key = await importKnownKey(addon, algorithm);
  const publicKey = key.publicKey();
  const signature = await key.signDeterministic(knownMessage, knownContext);
  const isValid = await publicKey.verify(knownMessage, signature, knownContext);
  const isValidElsewhere = await publicKey.verify(knownMessage, signature, new Uint8Array());
  return digest(key, signature) === knownAnswers[algorithm] && isValid && !isValidElsewhere;
}

async function isMlKemRight(addon: NativeAddon, algorithm: MlKemAlgorithm): Promise<boolean> {
  const key = await importKnownKey(addon, algorithm);
  const rejected = await key.decapsulate(new Uint8Array(kemAlgorithms[algorithm].ciphertextBytes));
  const [ciphertext, sharedSecret] = await key.publicKey().encapsulate();
  const agreed = await key.decapsulate(ciphertext);
  return digest(key, rejected) === knownAnswers[algorithm] && agreed.toHex() === sharedSecret.toHex();
}

async function importKnownKey(
  addon: NativeAddon,
  algorithm: MlDsaAlgorithm | MlKemAlgorithm,
): Promise<NativeSecretKey> {
  const seed = Uint8Array.from({ length: algorithms[algorithm].seedBytes ?? 0 }, (_, i) => i);
  const key = await addon.importSecretKey(algorithm, seed, undefined);
  if (key === null) throw new CryptoError("SELF_TEST_FAILED", `AWS-LC rejects a valid ${algorithm} seed`);
  return key;
}

function digest(key: NativeSecretKey, result: Uint8Array): string {
  return hash("sha256", Buffer.concat([key.publicKey().export(), key.exportExpanded(), result]));
}
