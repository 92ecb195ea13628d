/** Composites and X-Wing: the drafts' test vectors, encodings, and bad keys, signatures and ciphertexts. */
import { sha3_256, shake256 } from "@noble/hashes/sha3.js";
import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
import { afterAll, describe, expect, it } from "vitest";
import {
  type CompositeAlgorithm,
  compositeHalves,
  compositeNames,
  signatureAlgorithms,
} from "../../src/crypto/algorithms.ts";
import { splitPublicKey } from "../../src/crypto/composite.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { readChildren } from "../../src/crypto/der.ts";
import { importKeyFile } from "../../src/crypto/key-file.ts";
import { encodePem } from "../../src/crypto/pem.ts";
import type { CryptoProvider, SecretKey } from "../../src/crypto/provider.ts";
import { testProvider } from "../../src/crypto/self-test.ts";
import { exportPublicKey, readSigningCertificates } from "../../src/crypto/signing-certificates.ts";
import { flipBit } from "../support/bytes.ts";
import { describeProviders, makeKeyPairs } from "../support/crypto-providers.ts";
import draft from "../vectors/composite.json" with { type: "json" };
import xWing from "../vectors/x-wing.json" with { type: "json" };
import { refusal } from "./refusal.ts";

const base64 = Uint8Array.fromBase64;
const vectors = draft.vectors.map(({ algorithm, ...bytes }) => ({
  algorithm: compositeNames.find((name) => name === algorithm) ?? "MLDSA44-Ed25519-SHA512",
  publicKey: base64(bytes.publicKey),
  pkcs8: base64(bytes.pkcs8),
  certificate: base64(bytes.certificate),
  signature: base64(bytes.signature),
  signatureWithContext: base64(bytes.signatureWithContext),
}));
const [text, textContext] = [base64(draft.message), base64(draft.context)];
const message = new TextEncoder().encode("a message");

/** Where the classical half of a signature starts. */
const classicalAt = (name: (typeof compositeNames)[number]) =>
  signatureAlgorithms[compositeHalves[name].mlDsa].signatureBytes;

describe("composites", () => {
  it("have the names, object identifiers and sizes of the draft", () => {
    const rows = compositeNames.map((name) => {
      const { oid, publicKeyBytes, secretKeyBytes, signatureBytes, standard } = signatureAlgorithms[name];
      return [name, oid, publicKeyBytes, secretKeyBytes, signatureBytes, standard];
    });
    const standard = "draft-ietf-lamps-pq-composite-sigs-19";
    expect(rows).toEqual([
      ["MLDSA44-Ed25519-SHA512", "1.3.6.1.5.5.7.6.39", 1344, 64, 2484, standard],
      ["MLDSA65-Ed25519-SHA512", "1.3.6.1.5.5.7.6.48", 1984, 64, 3373, standard],
      ["MLDSA65-ECDSA-P256-SHA512", "1.3.6.1.5.5.7.6.45", 2017, 83, 3381, standard],
      ["MLDSA87-ECDSA-P384-SHA512", "1.3.6.1.5.5.7.6.49", 2689, 96, 4731, standard],
    ]);
    expect(vectors.map(({ algorithm }) => algorithm)).toEqual(compositeNames);
  });
});

describeProviders("the draft's test vectors with %s", (provider) => {
  it.each(vectors)("verify, each with its context alone: $algorithm", async (vector) => {
    const { algorithm, publicKey: raw, signature, signatureWithContext } = vector;
    const publicKey = provider.importPublicKey(algorithm, { raw });
    const verify = (given: Uint8Array, context?: Uint8Array) =>
      provider.verify(publicKey, text, given, { context });
    expect(await verify(signature)).toBe(true);
    expect(await verify(signatureWithContext, textContext)).toBe(true);
    expect(await verify(signature, textContext)).toBe(false);
    expect(await verify(signatureWithContext)).toBe(false);
    expect(await provider.verify(publicKey, message, signature)).toBe(false);
  });

  it.each(vectors)("have certificates with the key, which verifies them: $algorithm", async (vector) => {
    const { algorithm, certificate: der } = vector;
    const [certificate] = readSigningCertificates(encodePem("CERTIFICATE", der), "the file");
    const publicKey = provider.importPublicKey(algorithm, { pem: exportPublicKey(certificate, "the file") });
    expect(publicKey.exportRaw()).toEqual(vector.publicKey);
    const [signed, , signature] = readChildren(der);
    const toBeSigned = der.subarray(signed?.start, signed?.end);
    const bits = signature?.content.subarray(1) ?? new Uint8Array();
    expect(await provider.verify(publicKey, toBeSigned, bits)).toBe(true);
  });

  it.each(vectors)("have PKCS#8 keys that import and export unchanged: $algorithm", async (vector) => {
    const { algorithm, pkcs8, publicKey } = vector;
    const secretKey = await importKeyFile(provider, algorithm, pkcs8);
    expect(secretKey.publicKey.exportRaw()).toEqual(publicKey);
    expect(secretKey.toPem()).toBe(encodePem("PRIVATE KEY", pkcs8));
    const signature = await provider.sign(secretKey, message);
    expect(await provider.verify(secretKey.publicKey, message, signature)).toBe(true);
  });
});

describeProviders("composite keys with %s", (provider) => {
  it.each([
    ["a missing byte", (raw: Uint8Array) => raw.subarray(0, -1)],
    ["an extra byte", (raw: Uint8Array) => Buffer.concat([raw, Uint8Array.of(0)])],
    ["a point that is not on the curve", (raw: Uint8Array) => flipBit(raw, raw.length - 1)],
    ["a compressed point", (raw: Uint8Array) => flipBit(raw, 1952, 6)],
    ["the ML-DSA half alone", (raw: Uint8Array) => raw.subarray(0, 1952)],
  ])("are rejected with %s", async (_what, change) => {
    const { publicKey } = await provider.generateKeyPair("MLDSA65-ECDSA-P256-SHA512");
    const raw = change(publicKey.exportRaw());
    expect(await refusal(() => provider.importPublicKey("MLDSA65-ECDSA-P256-SHA512", { raw }))).toBe(
      "INVALID_KEY",
    );
  });

  it.each([
    ["a scalar of 0", (raw: Uint8Array) => raw.fill(0, raw.length - 12 - 32, raw.length - 12)],
    ["a scalar above the group order", (raw: Uint8Array) => raw.fill(255, raw.length - 44, raw.length - 12)],
    ["a different curve", (raw: Uint8Array) => flipBit(raw, raw.length - 1)],
    ["an ECPrivateKey of a different version", (raw: Uint8Array) => flipBit(raw, 36)],
    ["a missing byte", (raw: Uint8Array) => raw.subarray(0, -1)],
  ])("are rejected with %s in the secret half", async (_what, change) => {
    const { secretKey } = await provider.generateKeyPair("MLDSA65-ECDSA-P256-SHA512");
    const raw = change(secretKey.exportRaw());
    expect(await refusal(() => provider.importSecretKey("MLDSA65-ECDSA-P256-SHA512", { raw }))).toBe(
      "INVALID_KEY",
    );
  });

  it("are rejected in PKCS#8 of a different composite with the same lengths", async () => {
    const [, other] = vectors;
    const pem = encodePem("PRIVATE KEY", other?.pkcs8 ?? new Uint8Array());
    await expect(provider.importSecretKey("MLDSA44-Ed25519-SHA512", { pem })).rejects.toThrow(
      "contains an MLDSA65-Ed25519-SHA512 key; expected MLDSA44-Ed25519-SHA512",
    );
  });
});

describeProviders("composite signatures with %s", async (provider) => {
  const pairOf = await makeKeyPairs(provider, compositeNames);

  it.each(compositeNames)("do not verify with a change in either half: %s", async (name) => {
    const { publicKey, secretKey } = pairOf(name);
    const signature = await provider.sign(secretKey, message);
    const verify = (given: Uint8Array) => provider.verify(publicKey, message, given);
    expect(await verify(signature)).toBe(true);
    const at = classicalAt(name);
    const parts = [
      signature.subarray(0, at),
      signature.subarray(at),
      signature.subarray(0, -1),
      new Uint8Array(),
    ];
    const places = [0, at - 1, at, at + 20, signature.length - 1];
    const longer = Uint8Array.of(...signature, 0);
    for (const changed of [...places.map((place) => flipBit(signature, place)), ...parts, longer])
      expect(await verify(changed)).toBe(false);
  });

  it.each(compositeNames)("do not verify with a half of a different key: %s", async (name) => {
    const { publicKey, secretKey } = pairOf(name);
    const other = await provider.generateKeyPair(name);
    const signature = await provider.sign(secretKey, message);
    const [mine, theirs] = [publicKey, other.publicKey].map((key) => splitPublicKey(name, key.exportRaw()));
    for (const [half, rest] of [
      [mine, theirs],
      [theirs, mine],
    ]) {
      const raw = Uint8Array.of(...(half?.mlDsa ?? []), ...(rest?.classical ?? []));
      const mixed = provider.importPublicKey(name, { raw });
      expect(await provider.verify(mixed, message, signature)).toBe(false);
    }
  });

  it("do not verify as signatures of their ML-DSA half", async () => {
    const { publicKey, secretKey } = pairOf("MLDSA65-ECDSA-P256-SHA512");
    const signature = await provider.sign(secretKey, message);
    const raw = splitPublicKey("MLDSA65-ECDSA-P256-SHA512", publicKey.exportRaw()).mlDsa;
    const half = provider.importPublicKey("ML-DSA-65", { raw });
    expect(await provider.verify(half, message, signature.subarray(0, 3309))).toBe(false);
  });

  it.each(compositeNames)("can be made and verified from the message in pieces: %s", async (name) => {
    const { publicKey, secretKey } = pairOf(name);
    const context = Uint8Array.of(9);
    const representative = representInPieces(provider, name, context);
    const signature = await provider.signRepresentative(secretKey, representative);
    expect(await provider.verify(publicKey, message, signature, { context })).toBe(true);
    const whole = await provider.sign(secretKey, message, { context });
    expect(await provider.verifyRepresentative(publicKey, representative, whole)).toBe(true);
    expect(await provider.verifyRepresentative(publicKey, representative, flipBit(whole, 9))).toBe(false);
    const other = representInPieces(provider, name, Uint8Array.of(8));
    expect(await provider.verifyRepresentative(publicKey, other, whole)).toBe(false);
  });

  function representInPieces(from: CryptoProvider, name: CompositeAlgorithm, context: Uint8Array) {
    const hash = from.startRepresentative(pairOf(name).publicKey, { context });
    hash.update(message.subarray(0, 3));
    hash.update(message.subarray(3));
    return hash.digest();
  }

  it("are made of nothing but a representative of the same algorithm", async () => {
    const { publicKey, secretKey } = pairOf("MLDSA65-Ed25519-SHA512");
    const representative = representInPieces(provider, "MLDSA65-Ed25519-SHA512", Uint8Array.of(1));
    for (const wrong of [
      representInPieces(provider, "MLDSA44-Ed25519-SHA512", Uint8Array.of(1)),
      new Uint8Array(),
      representative.subarray(0, -1),
      Buffer.concat([representative, Uint8Array.of(0)]),
      // The length of the context.
      flipBit(representative, 32 + "COMPSIG-MLDSA65-Ed25519-SHA512".length),
    ]) {
      expect(await refusal(() => provider.signRepresentative(secretKey, wrong))).toBe("INVALID_ARGUMENT");
      const verifying = () => provider.verifyRepresentative(publicKey, wrong, new Uint8Array(3373));
      expect(await refusal(verifying)).toBe("INVALID_ARGUMENT");
    }
  });
});

const hex = Uint8Array.fromHex;
const xWingVectors = xWing.vectors.map((vector) => ({
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

  it.each(xWingVectors)(
    "derives the public key and the secret in the draft's vectors: $start…",
    async (vector) => {
      const secretKey = await importSeed(vector.seed);
      expect(secretKey.publicKey.exportRaw()).toEqual(vector.publicKey);
      expect(secretKey.exportSeed()).toEqual(vector.seed);
      expect(secretKey.exportRaw()).toEqual(vector.seed);
      expect(await provider.decapsulate(secretKey, vector.ciphertext)).toEqual(vector.sharedSecret);
    },
  );

  it("writes and reads the PEM in the draft's example", async () => {
    const { seed, privateKeyPem, publicKeyPem } = xWing.example;
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
