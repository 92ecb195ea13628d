/** New key pairs are erased after use, whatever happens. */
import { afterAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { withFreshKeyPair, withFreshKeyPairs } from "../../src/crypto/fresh-key-pair.ts";
import type { CryptoProvider, KeyPair, SecretKey } from "../../src/crypto/provider.ts";

const provider = await createCryptoProvider("openssl");
afterAll(() => provider.close());

const isErased = (secretKey: SecretKey | undefined): boolean => {
  try {
    secretKey?.exportSeed();
    return false;
  } catch {
    return true;
  }
};

describe("a new key pair", () => {
  it("is erased after use", async () => {
    const secretKey = await withFreshKeyPair(provider, "ML-DSA-44", async (pair) => {
      expect(isErased(pair.secretKey)).toBe(false);
      return pair.secretKey;
    });
    expect(isErased(secretKey)).toBe(true);
  });

  it("is erased if its use fails", async () => {
    let lent: KeyPair | undefined;
    const failing = withFreshKeyPair(provider, "ML-DSA-44", (pair) => {
      lent = pair;
      return Promise.reject(new Error("use failed"));
    });
    await expect(failing).rejects.toThrow("use failed");
    expect(isErased(lent?.secretKey)).toBe(true);
  });
});

describe("several new key pairs", () => {
  it("come in the order of their algorithms and are erased after use", async () => {
    const secretKeys = await withFreshKeyPairs(provider, ["ML-DSA-44", "ML-DSA-65"], async (pairs) =>
      pairs.map(({ secretKey }) => secretKey),
    );
    expect(secretKeys.map(({ algorithm }) => algorithm)).toEqual(["ML-DSA-44", "ML-DSA-65"]);
    expect(secretKeys.map(isErased)).toEqual([true, true]);
  });

  it("are erased if one of them cannot be generated", async () => {
    const generated: SecretKey[] = [];
    const failing: Pick<CryptoProvider, "generateKeyPair"> = {
      async generateKeyPair(algorithm) {
        if (algorithm === "ML-DSA-65") throw new Error("no randomness");
        const pair = await provider.generateKeyPair(algorithm);
        generated.push(pair.secretKey);
        return pair;
      },
    };
    const use = () => Promise.reject(new Error("used without all pairs"));
    await expect(withFreshKeyPairs(failing, ["ML-DSA-65", "ML-DSA-44"], use)).rejects.toThrow(
      "no randomness",
    );
    expect(generated.map(isErased)).toEqual([true]);
  });
});
