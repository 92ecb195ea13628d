import { calculateJwkThumbprint, importJWK } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeBase64url } from "../../src/crypto/base64url.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { readPublicJwks, toPublicJwk } from "../../src/crypto/jwk.ts";
import type { JsonValue } from "../../src/crypto/strict-json.ts";
import { refusal } from "./refusal.ts";

const provider = await createCryptoProvider("openssl");
afterAll(() => provider.close());

describe("a JSON Web Key", () => {
  it.each(["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"] as const)(
    "for %s has the thumbprint that jose computes",
    async (algorithm) => {
      const { publicKey } = await provider.generateKeyPair(algorithm);
      const published = toPublicJwk(publicKey);
      expect(published).toMatchObject({ kty: "AKP", alg: algorithm, use: "sig" });
      expect(await calculateJwkThumbprint({ ...published })).toBe(published.kid);
      expect(await importJWK({ ...published })).toMatchObject({ type: "public" });
      expect(decodeBase64url(published.pub)).toEqual(publicKey.exportRaw());
    },
  );

  it.each(["SLH-DSA-SHA2-128f", "ML-KEM-768", "ECDSA-P256"] as const)(
    "is not standardized for %s",
    async (algorithm) => {
      const { publicKey } = await provider.generateKeyPair(algorithm);
      expect(await refusal(() => toPublicJwk(publicKey))).toBe("UNSUPPORTED");
    },
  );
});

describe("a parsed public JWK", () => {
  let jwk: Readonly<Record<string, JsonValue>>;
  beforeAll(async () => {
    const { publicKey } = await provider.generateKeyPair("ML-DSA-65");
    jwk = { ...toPublicJwk(publicKey) };
  });
  const read = (members: Readonly<Record<string, JsonValue>>) => readPublicJwks({ ...jwk, ...members });

  it("is the same key, even with key operations and unknown members", () => {
    for (const more of [{}, { key_ops: ["verify"] }, { key_ops: ["verify", "x-other"], x5c: ["AAAA"] }])
      expect(read(more)).toMatchObject([{ algorithm: "ML-DSA-65" }]);
  });

  it.each<[string, Readonly<Record<string, JsonValue>>, string]>([
    ["a different type", { kty: "OKP" }, 'kty of the JWK must be "AKP"'],
    ["the algorithm of a shorter key", { alg: "ML-DSA-44" }, "1312 bytes in base64url"],
    ["a JOSE algorithm other than ML-DSA", { alg: "ES256" }, "alg of the JWK must be one of ML-DSA-44"],
    ["a public key in hexadecimal", { pub: "00".repeat(1952) }, "1952 bytes in base64url"],
    ["an encryption use", { use: "enc" }, 'use of the JWK must be "sig"'],
    ["a use that is a list", { use: ["sig"] }, 'use of the JWK must be "sig"'],
    ["other operations", { key_ops: ["encrypt"] }, 'key_ops of the JWK must include "verify"'],
    ["an operation that is not a string", { key_ops: ["verify", 1] }, "key_ops of the JWK must be a list"],
    ["a string as the operations", { key_ops: "verify" }, "key_ops of the JWK must be a list"],
    ["no algorithm", { alg: null }, "alg of the JWK must be one of ML-DSA-44"],
    ["a duplicate operation", { key_ops: ["verify", "verify"] }, "key_ops of the JWK must be a list"],
    ["its secret key", { priv: "AAAA" }, "the JWK has priv: it is a secret key"],
    ["a null secret key", { priv: null }, "the JWK has priv: it is a secret key"],
  ])("is rejected with %s", (_, members, message) => {
    expect(() => read(members)).toThrow(message);
    // A set skips keys of other types and uses (RFC 7517, section 5), but not a broken ML-DSA key.
    const isOther =
      "kty" in members || members.alg === "ES256" || members.alg === null || members.use === "enc";
    const set = () => readPublicJwks({ keys: [{ ...jwk, ...members }, { ...jwk }] });
    if (isOther) expect(set()).toHaveLength(1);
    else expect(set).toThrow("key 1 of the JWK set");
  });
});
