import { calculateJwkThumbprint, importJWK } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeBase64url } from "../../src/crypto/base64url.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { toPublicJwk } from "../../src/crypto/jwk.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { refusal } from "./refusal.ts";

let provider: CryptoProvider;
beforeAll(async () => {
  provider = await createCryptoProvider("openssl");
});
afterAll(() => provider.close());

describe("a JSON Web Key", () => {
  it.each(["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"] as const)(
    "of %s has the thumbprint that jose computes",
    async (algorithm) => {
      const { publicKey } = await provider.generateKeyPair(algorithm);
      const published = toPublicJwk(provider, publicKey);
      expect(published).toMatchObject({ kty: "AKP", alg: algorithm, use: "sig" });
      expect(await calculateJwkThumbprint({ ...published })).toBe(published.kid);
      expect(await importJWK({ ...published })).toMatchObject({ type: "public" });
      expect(decodeBase64url(published.pub)).toEqual(publicKey.exportRaw());
    },
  );

  it.each(["SLH-DSA-SHA2-128f", "ML-KEM-768", "ECDSA-P256"] as const)(
    "of %s is not standardised",
    async (algorithm) => {
      const { publicKey } = await provider.generateKeyPair(algorithm);
      expect(await refusal(() => toPublicJwk(provider, publicKey))).toBe("UNSUPPORTED");
    },
  );
});
