/** X-Wing: the draft's test vectors, its encodings, and how it handles bad keys and ciphertexts. */
import { sha3_256, shake256 } from "@noble/hashes/sha3.js";
import { ml_kem768_x25519 } from "@noble/post-quantum/hybrid.js";
import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
import { afterAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider, SecretKey } from "../../src/crypto/provider.ts";
import { testProvider } from "../../src/crypto/self-test.ts";
import { flipBit } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import draft from "../vectors/x-wing.json" with { type: "json" };
import { refusal } from "./refusal.ts";

const hex = Uint8Array.fromHex;
const vectors = draft.vectors.map((vector) => ({
  start: vector.seed.slice(0, 8),
  seed: hex(vector.seed),
  publicKey: hex(vector.publicKey),
  ciphertext: hex(vector.ciphertext),
  sharedSecret: hex(vector.sharedSecret),
}));
/** Where the X25519 half starts: after the ML-KEM-768 key, and after its ciphertext. */
const pointInKey = 1184;
const pointInCiphertext = 1088;
/** Points of low order, for which X25519 gives zero (RFC 7748, section 6.1). */
const lowOrderPoints = {
  "the point 0": "0000000000000000000000000000000000000000000000000000000000000000",
  "the point 1": "0100000000000000000000000000000000000000000000000000000000000000",
  "a point of order 8": "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
};

describeProviders("X-Wing with %s", (provider) => {
  const importSeed = (seed: Uint8Array) => provider.importSecretKey("X-Wing", { seed });

  it.each(vectors)(
    "derives the public key and the secret in the draft's vectors: $start…",
    async (vector) => {
      const secretKey = await importSeed(vector.seed);
      expect(secretKey.publicKey.exportRaw()).toEqual(vector.publicKey);
      expect(secretKey.exportSeed()).toEqual(vector.seed);
      expect(secretKey.exportRaw()).toEqual(vector.seed);
      expect(await provider.decapsulate(secretKey, vector.ciphertext)).toEqual(vector.sharedSecret);
    },
  );

  it.each(vectors)(
    "encapsulates to the vectors' keys so that noble can decapsulate: $start…",
    async (vector) => {
      const publicKey = provider.importPublicKey("X-Wing", { raw: vector.publicKey });
      const { ciphertext, sharedSecret } = await provider.encapsulate(publicKey);
      expect(ml_kem768_x25519.decapsulate(ciphertext, vector.seed)).toEqual(sharedSecret);
    },
  );

  it("writes and reads the PEM in the draft's example", async () => {
    const { seed, privateKeyPem, publicKeyPem } = draft.example;
    const secretKey = await provider.importSecretKey("X-Wing", { pem: privateKeyPem });
    expect(secretKey.exportSeed()?.toHex()).toBe(seed);
    expect(secretKey.toPem()).toBe(privateKeyPem);
    expect(secretKey.publicKey.toPem()).toBe(publicKeyPem);
    const publicKey = provider.importPublicKey("X-Wing", { pem: publicKeyPem });
    expect(publicKey.exportRaw()).toEqual(secretKey.publicKey.exportRaw());
  });

  it.each(Object.entries(lowOrderPoints))(
    "accepts %s in a ciphertext and in a public key, as the draft does",
    async (_name, point) => {
      const { publicKey, secretKey } = await provider.generateKeyPair("X-Wing");
      const [seed, raw] = [secretKey.exportRaw(), publicKey.exportRaw()];
      const { ciphertext } = await provider.encapsulate(publicKey);
      ciphertext.set(hex(point), pointInCiphertext);
      expect(await provider.decapsulate(secretKey, ciphertext)).toEqual(
        combineWithZero(seed, ciphertext, raw),
      );
      raw.set(hex(point), pointInKey);
      const sent = await provider.encapsulate(provider.importPublicKey("X-Wing", { raw }));
      expect(sent.sharedSecret).toEqual(combineWithZero(seed, sent.ciphertext, raw));
    },
  );

  it("rejects a public key whose ML-KEM half has a coefficient of q or more", async () => {
    const raw = (await importSeed(new Uint8Array(32))).publicKey.exportRaw();
    const attempts = [raw.with(0, 0xff).with(1, 0xff), raw.subarray(1), Uint8Array.of(...raw, 0)];
    const refusals = attempts.map((bytes) =>
      refusal(() => provider.importPublicKey("X-Wing", { raw: bytes })),
    );
    expect(await Promise.all(refusals)).toEqual(attempts.map(() => "INVALID_KEY"));
  });
});

describe("a provider's self-test", async () => {
  const provider = await createCryptoProvider("openssl");
  afterAll(() => provider.close());

  /** A provider that computes X-Wing differently. */
  function change(changed: Partial<CryptoProvider>): CryptoProvider {
    return new Proxy(provider, {
      get(target, name) {
        const value = Reflect.get(name in changed ? changed : target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  async function decapsulateWrongly(secretKey: SecretKey, ciphertext: Uint8Array) {
    const sharedSecret = await provider.decapsulate(secretKey, ciphertext);
    return secretKey.algorithm === "X-Wing" ? flipBit(sharedSecret, 0) : sharedSecret;
  }

  const expandWrongly: CryptoProvider["importSecretKey"] = (algorithm, material) =>
    provider.importSecretKey(algorithm, "seed" in material ? { seed: flipBit(material.seed, 0) } : material);

  it("passes for an unchanged provider", async () => {
    expect(await refusal(() => testProvider(change({})))).toBeUndefined();
  });

  it.each<[string, Partial<CryptoProvider>]>([
    ["decapsulates to a different secret", { decapsulate: decapsulateWrongly }],
    ["expands seeds to different keys, on which both sides agree", { importSecretKey: expandWrongly }],
  ])("rejects X-Wing that %s", async (_what, changed) => {
    expect(await refusal(() => testProvider(change(changed)))).toBe("SELF_TEST_FAILED");
  });
});

/** The secret for a ciphertext if X25519 gives zero (sections 5.2 to 5.5 of the draft). */
function combineWithZero(seed: Uint8Array, ciphertext: Uint8Array, publicKey: Uint8Array): Uint8Array {
  const { secretKey } = ml_kem768.keygen(shake256(seed, { dkLen: 96 }).subarray(0, 64));
  const mlKemSecret = ml_kem768.decapsulate(ciphertext.subarray(0, pointInCiphertext), secretKey);
  const input = [
    mlKemSecret,
    new Uint8Array(32),
    ciphertext.subarray(pointInCiphertext),
    publicKey.subarray(pointInKey),
    new TextEncoder().encode("\\.//^\\"),
  ];
  return Uint8Array.from(sha3_256(Buffer.concat(input)));
}
