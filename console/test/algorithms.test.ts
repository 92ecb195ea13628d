import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { decapsulateHere, nameCode, verifyHere } from "../page/algorithms.ts";

afterEach(() => vi.restoreAllMocks());
const { publicKey, secretKey } = ml_dsa65.keygen();
const message = Uint8Array.of(1, 2, 3);
const signature = ml_dsa65.sign(message, secretKey);
const verify = () => verifyHere("ML-DSA-65", signature, message, publicKey);

describe("verifyHere", () => {
  it("verifies with the library where Web Cryptography lacks the algorithm, and says so", async () => {
    vi.spyOn(crypto.subtle, "importKey").mockRejectedValue(new DOMException("", "NotSupportedError"));
    expect([await verify(), nameCode("ML-DSA-65")]).toEqual([true, "@noble/post-quantum"]);
  });

  it("verifies with both, and says so", async () => {
    expect([await verify(), nameCode("ML-DSA-65")]).toEqual([
      true,
      "@noble/post-quantum and Web Cryptography",
    ]);
  });

  it("finds a signature not valid if one of them does", async () => {
    vi.spyOn(crypto.subtle, "verify").mockResolvedValue(false);
    expect(await verify()).toBe(false);
  });
});

describe("decapsulateHere", () => {
  it("opens a ciphertext with both, and refuses different secrets", async () => {
    const seed = crypto.getRandomValues(new Uint8Array(64));
    const keys = ml_kem768.keygen(seed);
    const { cipherText, sharedSecret } = ml_kem768.encapsulate(keys.publicKey);
    const open = (from: Uint8Array) => decapsulateHere("ML-KEM-768", from, keys.secretKey, cipherText);
    expect(await open(seed)).toEqual(sharedSecret);
    await expect(open(seed.toReversed())).rejects.toThrow("compute different secrets");
  });
});
