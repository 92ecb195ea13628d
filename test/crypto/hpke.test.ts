/**
 * HPKE: key wrapping, and the vectors of draft-ietf-hpke-pq. None of these has AES-256-GCM, so they cover our KEMs, and
 * the key schedule with the other AEAD.
 */
import { randomBytes } from "node:crypto";
import {
  AEAD_AES_256_GCM,
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
  type HpkeAlgorithm,
  maxPlaintextBytes,
  type SealContext,
  unwrap,
  type WrappingMethod,
  wrap,
  wrappingMethods,
} from "../../src/crypto/hpke.ts";
import { openMessage, sealMessage } from "../../src/crypto/hpke-suite.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import draft from "../vectors/hpke-pq.json" with { type: "json" };
import { refusal } from "./refusal.ts";

/** Length in bytes of enc (draft-ietf-hpke-pq-04, section 8). */
const encLengths: Record<WrappingMethod, number> = {
  HPKE_XWING_HKDF_SHA256_AES_256_GCM: 1120,
  HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM: 1088,
  HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM: 1568,
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
    const encBytes = encLengths[method];
    let publicKey: Uint8Array;
    let seed: Uint8Array;
    let wrapped: Uint8Array;
    beforeAll(async () => {
      ({ publicKey, seed } = await generateWrappingKey(provider, method));
      wrapped = await wrap(provider, method, publicKey, plaintext, context);
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

    /** What is opened instead, and how. */
    const changes: Record<string, () => readonly [Uint8Array, SealContext?, Uint8Array?]> = {
      "a changed bit at the start of enc": () => [flipBit(wrapped, 0)],
      "a changed bit in the ciphertext": () => [flipBit(wrapped, encBytes)],
      "a changed bit in the tag": () => [flipBit(wrapped, wrapped.length - 1)],
      "a missing byte": () => [wrapped.subarray(0, -1)],
      "an extra byte": () => [Uint8Array.of(...wrapped, 0)],
      "a different info": () => [wrapped, { ...context, info: bytesOf("import of key-2") }],
      "a different aad": () => [wrapped, { ...context, aad: bytesOf("X-Wing") }],
      "no context": () => [wrapped, {}],
      "a different key's seed": () => [wrapped, context, flipBit(seed, 3)],
    };

    it.each(Object.entries(changes))("does not open with %s", async (_name, change) => {
      const [given, used = context, by = seed] = change();
      expect(await refusal(() => unwrap(provider, method, by, given, used))).toBe("UNWRAP_FAILED");
    });

    const tooLong = new Uint8Array(65_537);
    const open = (length: number) => unwrap(provider, method, seed, new Uint8Array(length));
    const lengths: Record<string, () => Promise<Uint8Array>> = {
      "an empty input": () => open(0),
      "an input too short for a tag": () => open(encBytes + tagBytes - 1),
      "a longer input than any wrapped key": () => open(encBytes + tagBytes + maxPlaintextBytes + 1),
      "an oversized plaintext": () =>
        wrap(provider, method, publicKey, new Uint8Array(maxPlaintextBytes + 1)),
      "an info of 65,537 bytes": () => unwrap(provider, method, seed, wrapped, { info: tooLong }),
      "an aad of 65,537 bytes": () => unwrap(provider, method, seed, wrapped, { aad: tooLong }),
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

  it("does not open with a different method for the same private key", async () => {
    const [small, large] = [
      "HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM",
      "HPKE_ML_KEM_1024_HKDF_SHA256_AES_256_GCM",
    ] as const;
    const { publicKey, seed } = await generateWrappingKey(provider, small);
    const wrapped = await wrap(provider, small, publicKey, new Uint8Array(1000));
    expect(await unwrap(provider, small, seed, wrapped)).toHaveLength(1000);
    expect(await refusal(() => unwrap(provider, large, seed, wrapped))).toBe("UNWRAP_FAILED");
  });
});

it.each(["HPKE_XWING", "constructor"])("%s is no wrapping method", async (unknown) => {
  const provider = await createCryptoProvider("openssl");
  expect(await refusal(() => generateWrappingKey(provider, unknown as WrappingMethod))).toBe(
    "INVALID_ARGUMENT",
  );
  await provider.close();
});

const hex = Uint8Array.fromHex;
const vectors = draft.vectors.map((vector) => ({ ...vector, algorithm: vector.algorithm as HpkeAlgorithm }));
/** HKDF-SHA256 and ChaCha20-Poly1305 (RFC 9180, sections 7.2 and 7.3). */
const scheduled = vectors.filter(({ kdf_id, aead_id }) => kdf_id === 1 && aead_id === 3);

describeProviders("HPKE with %s and the draft's vectors", (provider) => {
  it.each(vectors)(
    "has the draft's public key and shared secret: $algorithm, $kdf_id, $aead_id",
    async ({ algorithm, skRm, pkRm, enc, shared_secret }) => {
      const secretKey = await provider.importSecretKey(algorithm, { seed: hex(skRm) });
      expect(secretKey.publicKey.exportRaw()).toEqual(hex(pkRm));
      expect(await provider.decapsulate(secretKey, hex(enc))).toEqual(hex(shared_secret));
    },
  );
});

describe("the draft's vectors", () => {
  it("have each of our KEMs, and one has a key schedule of ours", () => {
    expect(new Set(vectors.map(({ kem_id }) => kem_id))).toEqual(new Set([0x0041, 0x0042, 0x647a]));
    expect(scheduled.map(({ algorithm }) => algorithm)).toEqual(["X-Wing"]);
  });

  it.each(scheduled)("open and are sealed alike: $algorithm", (vector) => {
    const { kem_id, shared_secret, ct, pt, info, aad } = vector;
    const secret = { kemId: kem_id, sharedSecret: hex(shared_secret) };
    const context = { info: hex(info), aad: hex(aad), aead: "ChaCha20Poly1305" } as const;
    expect(openMessage(secret, hex(ct), context)).toEqual(hex(pt));
    expect(sealMessage(secret, hex(pt), context).toString("hex")).toBe(ct);
  });
});
