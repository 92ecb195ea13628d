/** HPKE key wrapping: what opens and what does not. */
import { randomBytes } from "node:crypto";
import {
  AEAD_AES_256_GCM,
  AEAD_ChaCha20Poly1305,
  CipherSuite,
  KDF_HKDF_SHA256,
  KEM_ML_KEM_768,
  KEM_ML_KEM_1024,
  KEM_MLKEM768_X25519,
} from "hpke";
import { beforeAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import {
  generateWrappingKey,
  isWrappingMethod,
  kemIds,
  maxPlaintextBytes,
  unwrap,
  type WrappingMethod,
  wrap,
  wrappingMethods,
} from "../../src/crypto/hpke.ts";
import { openMessage, sealMessage } from "../../src/crypto/hpke-suite.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import { refusal } from "./refusal.ts";

/** Lengths in bytes of private key, public key and enc (draft-ietf-hpke-pq-04, section 8). */
const sizes: Record<WrappingMethod, { seed: number; publicKey: number; enc: number }> = {
  HPKE_XWING_HKDF_SHA256_AES_256_GCM: { seed: 32, publicKey: 1216, enc: 1120 },
  HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM: { seed: 64, publicKey: 1184, enc: 1088 },
  HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM: { seed: 64, publicKey: 1568, enc: 1568 },
};
const suites = {
  HPKE_XWING_HKDF_SHA256_AES_256_GCM: KEM_MLKEM768_X25519,
  HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM: KEM_ML_KEM_768,
  HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM: KEM_ML_KEM_1024,
};
const tagBytes = 16;
const plaintext = bytesOf("a secret key in PKCS#8");
const context = { info: bytesOf("import of key-1"), aad: bytesOf("ML-DSA-65") };

describeProviders("HPKE with %s", (provider) => {
  describe.each(wrappingMethods)("%s", (method) => {
    const { enc: encBytes } = sizes[method];
    let publicKey: Uint8Array;
    let seed: Uint8Array;
    let wrapped: Uint8Array;
    beforeAll(async () => {
      ({ publicKey, seed } = await generateWrappingKey(provider, method));
      wrapped = await wrap(provider, method, publicKey, plaintext, context);
    });

    it("uses the lengths in the draft", () => {
      expect({ publicKey: publicKey.length, seed: seed.length, wrapped: wrapped.length }).toEqual({
        publicKey: sizes[method].publicKey,
        seed: sizes[method].seed,
        wrapped: encBytes + plaintext.length + tagBytes,
      });
    });

    it("opens what it wrapped and leaves its inputs unchanged", async () => {
      const inputs = [Uint8Array.from(seed), Uint8Array.from(wrapped)];
      expect(await unwrap(provider, method, seed, wrapped, context)).toEqual(plaintext);
      expect([seed, wrapped]).toEqual(inputs);
    });

    it("wraps an empty plaintext and one of maximum length, without a context", async () => {
      for (const bytes of [new Uint8Array(), new Uint8Array(randomBytes(maxPlaintextBytes))]) {
        const sealed = await wrap(provider, method, publicKey, bytes);
        expect(await unwrap(provider, method, seed, sealed)).toEqual(bytes);
      }
    });

    const changes: Record<string, () => Promise<Uint8Array>> = {
      "a changed bit at the start of enc": () => unwrap(provider, method, seed, flipBit(wrapped, 0), context),
      "a changed bit at the end of enc": () =>
        unwrap(provider, method, seed, flipBit(wrapped, encBytes - 2), context),
      "a changed bit in the ciphertext": () =>
        unwrap(provider, method, seed, flipBit(wrapped, encBytes), context),
      "a changed bit in the tag": () =>
        unwrap(provider, method, seed, flipBit(wrapped, wrapped.length - 1), context),
      "a missing byte": () => unwrap(provider, method, seed, wrapped.subarray(0, -1), context),
      "an extra byte": () => unwrap(provider, method, seed, Uint8Array.of(...wrapped, 0), context),
      zeros: () => unwrap(provider, method, seed, new Uint8Array(wrapped.length), context),
      ones: () => unwrap(provider, method, seed, new Uint8Array(wrapped.length).fill(0xff), context),
      "a different info": () =>
        unwrap(provider, method, seed, wrapped, { ...context, info: bytesOf("import of key-2") }),
      "a different aad": () =>
        unwrap(provider, method, seed, wrapped, { ...context, aad: bytesOf("X-Wing") }),
      "no context": () => unwrap(provider, method, seed, wrapped),
      "a different key's seed": () => unwrap(provider, method, flipBit(seed, 3), wrapped, context),
    };

    it.each(Object.entries(changes))("does not open with %s", async (_name, attempt) => {
      expect(await refusal(attempt)).toBe("UNWRAP_FAILED");
    });

    const lengths: Record<string, () => Promise<Uint8Array>> = {
      "an empty input": () => unwrap(provider, method, seed, new Uint8Array()),
      "an input too short for a tag": () =>
        unwrap(provider, method, seed, new Uint8Array(encBytes + tagBytes - 1)),
      "a longer input than any wrapped key": () =>
        unwrap(provider, method, seed, new Uint8Array(encBytes + tagBytes + maxPlaintextBytes + 1)),
      "an oversized plaintext": () =>
        wrap(provider, method, publicKey, new Uint8Array(maxPlaintextBytes + 1)),
      "an info of 65,537 bytes": () =>
        unwrap(provider, method, seed, wrapped, { info: new Uint8Array(65_537) }),
      "an aad of 65,537 bytes": () =>
        unwrap(provider, method, seed, wrapped, { aad: new Uint8Array(65_537) }),
    };

    it.each(Object.entries(lengths))("rejects %s", async (_name, attempt) => {
      expect(await refusal(attempt)).toBe("INVALID_ARGUMENT");
    });

    it("agrees with the package hpke, in both directions", async () => {
      const suite = new CipherSuite(suites[method], KDF_HKDF_SHA256, AEAD_AES_256_GCM);
      const theirs = await suite.Seal(await suite.DeserializePublicKey(publicKey), plaintext, context);
      const sealed = Buffer.concat([theirs.encapsulatedSecret, theirs.ciphertext]);
      expect(await unwrap(provider, method, seed, sealed, context)).toEqual(plaintext);
      const secretKey = await suite.DeserializePrivateKey(seed);
      const [enc, ciphertext] = [wrapped.subarray(0, encBytes), wrapped.subarray(encBytes)];
      expect(await suite.Open(secretKey, enc, ciphertext, context)).toEqual(plaintext);
    });

    it("rejects a seed and a public key of the wrong length", async () => {
      const short = new Uint8Array(31);
      expect(await refusal(() => unwrap(provider, method, short, wrapped, context))).toBe("INVALID_KEY");
      expect(await refusal(() => wrap(provider, method, short, plaintext, context))).toBe("INVALID_KEY");
    });
  });

  it("agrees with the package hpke on ChaCha20-Poly1305, in both directions", async () => {
    const { publicKey, seed } = await generateWrappingKey(provider, "HPKE_XWING_HKDF_SHA256_AES_256_GCM");
    const suite = new CipherSuite(KEM_MLKEM768_X25519, KDF_HKDF_SHA256, AEAD_ChaCha20Poly1305);
    const ours = { ...context, aead: "ChaCha20Poly1305" } as const;
    const kemId = kemIds["X-Wing"];
    const theirs = await suite.Seal(await suite.DeserializePublicKey(publicKey), plaintext, context);
    const secretKey = await provider.importSecretKey("X-Wing", { seed });
    const opened = await provider.decapsulate(secretKey, theirs.encapsulatedSecret);
    expect(openMessage({ kemId, sharedSecret: opened }, theirs.ciphertext, ours)).toEqual(plaintext);
    const { ciphertext, sharedSecret } = await provider.encapsulate(secretKey.publicKey);
    const sealed = sealMessage({ kemId, sharedSecret }, plaintext, ours);
    const theirKey = await suite.DeserializePrivateKey(seed);
    expect(await suite.Open(theirKey, ciphertext, sealed, context)).toEqual(plaintext);
  });

  it("does not open with a different method for the same private key", async () => {
    const [, small, large] = wrappingMethods;
    const { publicKey, seed } = await generateWrappingKey(provider, small);
    const wrapped = await wrap(provider, small, publicKey, new Uint8Array(1000));
    expect(await unwrap(provider, small, seed, wrapped)).toHaveLength(1000);
    expect(await refusal(() => unwrap(provider, large, seed, wrapped))).toBe("UNWRAP_FAILED");
  });
});

describe("the wrapping methods", () => {
  it("are the ones in the table", () => {
    expect(wrappingMethods.every(isWrappingMethod)).toBe(true);
    expect(["constructor", "hpke_xwing_hkdf_sha256_aes_256_gcm", ""].some(isWrappingMethod)).toBe(false);
  });

  it("reject an unknown name", async () => {
    const provider = await createCryptoProvider("openssl");
    const unknown = "HPKE_XWING" as WrappingMethod;
    expect(await refusal(() => generateWrappingKey(provider, unknown))).toBe("INVALID_ARGUMENT");
    await provider.close();
  });
});
