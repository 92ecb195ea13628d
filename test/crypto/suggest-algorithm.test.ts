import { describe, expect, it } from "vitest";
import { algorithms } from "../../src/crypto/algorithms.ts";
import { suggestAlgorithm } from "../../src/crypto/suggest-algorithm.ts";

const names = Object.keys(algorithms);

describe("the suggestion for an algorithm name", () => {
  it.each([
    ["mldsa65", "ML-DSA-65"],
    ["ML_KEM_1024", "ML-KEM-1024"],
    ["slh-dsa-shake-128F", "SLH-DSA-SHAKE-128f"],
    ["xwing", "X-Wing"],
    ["ecdsa p256", "ECDSA-P256"],
    ["MLDSA65-Ed25519", "MLDSA65-Ed25519-SHA512"],
  ])("corrects case, hyphens and a missing end: %s", (given, name) => {
    expect(suggestAlgorithm(given, names)).toBe(`did you mean "${name}"?`);
  });

  it.each([
    ["Dilithium2", "Dilithium became ML-DSA (FIPS 204)", "ML-DSA-44"],
    ["dilithium3", "Dilithium became ML-DSA (FIPS 204)", "ML-DSA-65"],
    ["CRYSTALS-Dilithium-5", "Dilithium became ML-DSA (FIPS 204)", "ML-DSA-87"],
    ["CRYSTALS-KYBER-768", "Kyber became ML-KEM (FIPS 203)", "ML-KEM-768"],
    ["SPHINCS+-SHA2-256s", "SPHINCS+ became SLH-DSA (FIPS 205)", "SLH-DSA-SHA2-256s"],
    ["sphincs-sha256-128f-simple", "SPHINCS+ became SLH-DSA (FIPS 205)", "SLH-DSA-SHA2-128f"],
    ["SPHINCS+-SHAKE256-192s-robust", "SPHINCS+ became SLH-DSA (FIPS 205)", "SLH-DSA-SHAKE-192s"],
    ["sphincsplus-shake-256f", "SPHINCS+ became SLH-DSA (FIPS 205)", "SLH-DSA-SHAKE-256f"],
  ])("replaces the pre-standard name %s", (given, renamed, name) => {
    expect(suggestAlgorithm(given, names)).toBe(`${renamed}; did you mean "${name}"?`);
  });

  it.each([
    ["Dilithium", "Dilithium became ML-DSA (FIPS 204)"],
    ["SPHINCS+", "SPHINCS+ became SLH-DSA (FIPS 205)"],
  ])("names only the standard for a scheme without a set: %s", (given, renamed) => {
    expect(suggestAlgorithm(given, names)).toBe(renamed);
  });

  it.each([
    ["ML-DSA-512", "512 is an ML-KEM parameter set", "ML-DSA-44"],
    ["ML-DSA-768", "768 is an ML-KEM parameter set", "ML-DSA-65"],
    ["ml_kem_65", "65 is an ML-DSA parameter set", "ML-KEM-768"],
    ["ML-KEM-87", "87 is an ML-DSA parameter set", "ML-KEM-1024"],
  ])("maps a set of the other scheme to the equivalent one: %s", (given, mistake, name) => {
    expect(suggestAlgorithm(given, names)).toBe(`${mistake}; did you mean "${name}"?`);
  });

  it("never suggests an invalid set", () => {
    const signing = ["ML-DSA-44", "ML-DSA-65"];
    expect(suggestAlgorithm("Kyber768", signing)).toBe("Kyber became ML-KEM (FIPS 203)");
    expect(suggestAlgorithm("mlkem768", signing)).toBeUndefined();
    expect(suggestAlgorithm("mlkem65", signing)).toBe("65 is an ML-DSA parameter set");
  });

  it.each(["", "RSA-2048", "Dilithium4", "Kyber", "constructor", "-".repeat(65), `mldsa65${" ".repeat(64)}`])(
    "does not exist for unrelated, overlong or inapplicable names: %j",
    (given) => {
      const allowed = given === "Kyber" ? ["SIGN", "KEM"] : names;
      expect(suggestAlgorithm(given, allowed)).toBeUndefined();
    },
  );
});
