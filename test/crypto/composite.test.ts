import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type CompositeKeyPair,
  encodeCompositePublicKeyPem,
  exportCompositePublicKey,
  importCompositePublicKey,
  importCompositePublicKeyPem,
  joinKeyPairs,
  signComposite,
  verifyComposite,
} from "../../src/crypto/composite.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { flipBit } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import { readVectorFile, textOf, vectorsFolder } from "../vectors/vector-files.ts";
import { refusal } from "./refusal.ts";

const message = new TextEncoder().encode("a message");
const context = Uint8Array.of(1, 2, 3);
const both = { mldsaValid: true, ecdsaValid: true };
const neither = { mldsaValid: false, ecdsaValid: false };
const mldsaSignatureBytes = 3309;

async function generateCompositeKeyPair(provider: CryptoProvider): Promise<CompositeKeyPair> {
  return joinKeyPairs(
    await provider.generateKeyPair("ML-DSA-65"),
    await provider.generateKeyPair("ECDSA-P256"),
  );
}

describeProviders("composite signatures with %s", async (provider) => {
  const keyPair = await generateCompositeKeyPair(provider);
  const verdictOn = (signature: Uint8Array, usedContext?: Uint8Array) =>
    verifyComposite(provider, keyPair.publicKey, message, signature, usedContext);

  it.each([
    ["no context", new Uint8Array()],
    ["a context", context],
    ["a context of 255 bytes", new Uint8Array(255).fill(7)],
  ])("verify with %s, and with no other context", async (_what, used) => {
    const signature = await signComposite(provider, keyPair, message, used);
    expect(await verdictOn(signature, used)).toEqual(both);
    expect(await verdictOn(signature, Uint8Array.of(9))).toEqual(neither);
  });

  it("have an empty context by default", async () => {
    const signature = await signComposite(provider, keyPair, message);
    expect(await verdictOn(signature)).toEqual(both);
    expect(await verdictOn(signature, new Uint8Array())).toEqual(both);
  });

  it("do not verify for a different message", async () => {
    const signature = await signComposite(provider, keyPair, message);
    const other = verifyComposite(provider, keyPair.publicKey, Uint8Array.of(1), signature);
    expect(await other).toEqual(neither);
  });

  it.each([
    ["first byte", 0, { mldsaValid: false, ecdsaValid: true }],
    ["last byte of ML-DSA", mldsaSignatureBytes - 1, { mldsaValid: false, ecdsaValid: true }],
    ["first byte of ECDSA", mldsaSignatureBytes, { mldsaValid: true, ecdsaValid: false }],
    ["r", mldsaSignatureBytes + 20, { mldsaValid: true, ecdsaValid: false }],
  ])("report which half was changed: %s", async (_where, at, expected) => {
    const signature = await signComposite(provider, keyPair, message);
    expect(await verdictOn(flipBit(signature, at))).toEqual(expected);
  });

  it("do not verify with an extra byte", async () => {
    const signature = await signComposite(provider, keyPair, message);
    const longer = Buffer.concat([signature, Uint8Array.of(0)]);
    expect(await verdictOn(longer)).toEqual({ mldsaValid: true, ecdsaValid: false });
  });

  it("do not verify with a byte missing", async () => {
    const signature = await signComposite(provider, keyPair, message);
    expect(await verdictOn(signature.subarray(0, -1))).toEqual({ mldsaValid: true, ecdsaValid: false });
  });

  it.each([0, 1, 3308, 3309])("are invalid in both halves if they have %i bytes", async (length) => {
    const signature = await signComposite(provider, keyPair, message);
    expect(await verdictOn(signature.subarray(0, length))).toEqual(neither);
  });

  it("do not verify with halves from two keys", async () => {
    const signature = await signComposite(provider, keyPair, message);
    const other = await generateCompositeKeyPair(provider);
    const mixed = { mldsa: keyPair.publicKey.mldsa, ecdsa: other.publicKey.ecdsa };
    const verdict = await verifyComposite(provider, mixed, message, signature);
    expect(verdict).toEqual({ mldsaValid: true, ecdsaValid: false });
  });

  it("reject a context of 256 bytes", async () => {
    const tooLong = new Uint8Array(256);
    const signature = new Uint8Array(3380);
    expect(await refusal(() => signComposite(provider, keyPair, message, tooLong))).toBe("INVALID_ARGUMENT");
    expect(await refusal(() => verdictOn(signature, tooLong))).toBe("INVALID_ARGUMENT");
  });

  it("have 2017-byte public keys, the ML-DSA key followed by the point, that import unchanged", async () => {
    const raw = exportCompositePublicKey(keyPair);
    expect(raw).toHaveLength(2017);
    expect(raw.subarray(0, 1952)).toEqual(Buffer.from(keyPair.publicKey.mldsa.exportRaw()));
    expect(raw.subarray(1952)).toEqual(Buffer.from(keyPair.publicKey.ecdsa.exportRaw()));
    const publicKey = importCompositePublicKey(provider, raw);
    const signature = await signComposite(provider, keyPair, message);
    expect(await verifyComposite(provider, publicKey, message, signature)).toEqual(both);
  });

  it.each([
    ["a missing byte", (raw: Uint8Array) => raw.subarray(0, -1)],
    ["an extra byte", (raw: Uint8Array) => Buffer.concat([raw, Uint8Array.of(0)])],
    ["a point that is not on the curve", (raw: Uint8Array) => flipBit(raw, 2016)],
    ["a compressed point", (raw: Uint8Array) => flipBit(raw, 1952, 6)],
  ])("reject a public key with %s", async (_what, change) => {
    const raw = change(exportCompositePublicKey(keyPair));
    expect(await refusal(() => importCompositePublicKey(provider, raw))).toBe("INVALID_KEY");
  });
});

describe("composite public keys in PEM", () => {
  let provider: CryptoProvider;
  let raw: Uint8Array;
  beforeAll(async () => {
    provider = await createCryptoProvider("openssl");
    raw = exportCompositePublicKey(await generateCompositeKeyPair(provider));
  });
  afterAll(() => provider.close());

  const derOf = (pem: string) => Buffer.from(pem.replaceAll(/-----.*-----|\n/g, ""), "base64");
  const toPem = (der: Uint8Array) =>
    `-----BEGIN PUBLIC KEY-----\n${Buffer.from(der).toString("base64")}\n-----END PUBLIC KEY-----\n`;

  it("are a SubjectPublicKeyInfo with the OID 1.3.6.1.5.5.7.6.45, no parameters and the raw key", () => {
    const der = derOf(encodeCompositePublicKeyPem(raw));
    expect(der.subarray(0, -2017).toHex()).toBe("308207f2300a06082b0601050507062d038207e200");
    expect(der.subarray(-2017).toHex()).toBe(raw.toHex());
  });

  it("import to the same key as the raw bytes", () => {
    const publicKey = importCompositePublicKeyPem(provider, encodeCompositePublicKeyPem(raw));
    expect(exportCompositePublicKey({ publicKey }).toHex()).toBe(raw.toHex());
  });

  it.each([
    ["the key of only one half", () => importCompositePublicKey(provider, raw).mldsa.toPem()],
    ["a missing byte", () => toPem(derOf(encodeCompositePublicKeyPem(raw)).subarray(0, -1))],
    ["an extra byte", () => toPem(Buffer.concat([derOf(encodeCompositePublicKeyPem(raw)), Buffer.of(0)]))],
    ["a different OID", () => toPem(flipBit(derOf(encodeCompositePublicKeyPem(raw)), 15))],
    ["a point that is not on the curve", () => encodeCompositePublicKeyPem(flipBit(raw, 2016))],
    ["text that is not PEM", () => "x"],
  ])("reject %s", async (_what, make) => {
    expect(await refusal(() => importCompositePublicKeyPem(provider, make()))).toBe("INVALID_KEY");
  });

  it.each([2016, 2018])("reject encoding %i bytes", (length) => {
    expect(() => encodeCompositePublicKeyPem(new Uint8Array(length))).toThrow(RangeError);
  });
});

const isSkipped = vectorsFolder === undefined && process.env.QSP_TEST_REQUIRE_ALL !== "1";
const needed = isSkipped ? ": skipped because QSP_TEST_VECTORS is not set" : "";

describe.skipIf(isSkipped)(`the official example of id-MLDSA65-ECDSA-P256-SHA512${needed}`, () => {
  const readExample = (field: string) => {
    const { vectors } = readVectorFile(vectorsFolder ?? "", "composite_mldsa.json");
    const example = vectors.find(({ id }) => id === "id-MLDSA65-ECDSA-P256-SHA512");
    return Buffer.from(textOf(example ?? { id: field, expect: true }, field), "base64");
  };

  describeProviders("verifies with %s", (provider) => {
    it("without a context", async () => {
      const [raw, text, signature] = [readExample("pk"), readExample("m"), readExample("s")];
      const publicKey = importCompositePublicKey(provider, raw);
      expect(await verifyComposite(provider, publicKey, text, signature)).toEqual(both);
      expect(await verifyComposite(provider, publicKey, text, signature, context)).toEqual(neither);
      expect(await verifyComposite(provider, publicKey, message, signature)).toEqual(neither);
    });
  });
});
