import { calculateJwkThumbprint, importJWK, type JWK } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { importPublicJwk, type PublicJwk, toPublicJwk } from "../../src/crypto/jwk.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { refusal } from "./refusal.ts";

let provider: CryptoProvider;
let jwk: PublicJwk;
beforeAll(async () => {
  provider = await createCryptoProvider("openssl");
  jwk = toPublicJwk(provider, (await provider.generateKeyPair("ML-DSA-65")).publicKey);
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
      expect(importPublicJwk(provider, { ...published }).publicKey.exportRaw()).toEqual(
        publicKey.exportRaw(),
      );
    },
  );

  it.each(["SLH-DSA-SHA2-128f", "ML-KEM-768", "ECDSA-P256"] as const)(
    "of %s is not standardised",
    async (algorithm) => {
      const { publicKey } = await provider.generateKeyPair(algorithm);
      expect(await refusal(() => toPublicJwk(provider, publicKey))).toBe("UNSUPPORTED");
    },
  );

  const changes: Record<string, (published: PublicJwk) => JWK> = {
    "another kty": (published) => ({ ...published, kty: "OKP" }),
    "no alg": ({ alg: _alg, ...published }) => published,
    "an alg that is not ML-DSA": (published) => ({ ...published, alg: "ML-KEM-768" }),
    "the alg of another parameter set": (published) => ({ ...published, alg: "ML-DSA-44" }),
    "a private key": (published) => ({ ...published, priv: "A".repeat(43) }),
    "no pub": ({ pub: _pub, ...published }) => published,
    "a pub with padding": (published) => ({ ...published, pub: `${published.pub}=` }),
    "a pub in the standard alphabet": (published) => ({
      ...published,
      pub: `${published.pub.slice(0, -4)}++++`,
    }),
    "a pub one byte short": (published) => ({
      ...published,
      pub: published.pub.slice(0, -4),
    }),
  };
  it.each(Object.entries(changes))("is refused with %s", async (_name, change) => {
    expect(await refusal(() => importPublicJwk(provider, change(jwk)))).toBe("INVALID_KEY");
  });
});
