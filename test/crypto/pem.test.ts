import { describe, expect, it } from "vitest";
import type { Algorithm } from "../../src/crypto/algorithms.ts";
import type { SecretKey } from "../../src/crypto/provider.ts";
import { flipBit } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import { refusal } from "./refusal.ts";

/** AlgorithmIdentifiers in DER (RFC 9881, section 2; RFC 9935, section 3). */
const mlDsa65 = sequence(Uint8Array.fromHex("0609608648016503040312"));
const mlDsa65WithNull = sequence(Uint8Array.fromHex("06096086480165030403120500"));
const mlKem768 = sequence(Uint8Array.fromHex("0609608648016503040402"));

describeProviders("%s reads PEM", async (provider) => {
  const { secretKey: signing } = await provider.generateKeyPair("ML-DSA-65");
  const { secretKey: receiving } = await provider.generateKeyPair("ML-KEM-768");
  const seedOf = (secretKey: SecretKey) => secretKey.exportSeed() ?? new Uint8Array();

  describe("of a secret key in the forms of RFC 9881 and 9935:", () => {
    it("seed", async () => {
      const pem = pkcs8(mlDsa65, tlv(0x80, seedOf(signing)));
      expect(pem).toBe(signing.toPem());
      expect((await provider.importSecretKey("ML-DSA-65", { pem })).exportSeed()).toEqual(seedOf(signing));
    });

    it("expandedKey, which has no seed to export and is written unchanged", async () => {
      const pem = pkcs8(mlDsa65, tlv(0x04, signing.exportRaw()));
      const imported = await provider.importSecretKey("ML-DSA-65", { pem });
      expect(imported.exportSeed()).toBeUndefined();
      expect(imported.exportRaw()).toEqual(signing.exportRaw());
      expect(imported.toPem()).toBe(pem);
    });

    it("both, which is written as the seed", async () => {
      const pem = pkcs8(mlKem768, sequence(tlv(0x04, seedOf(receiving)), tlv(0x04, receiving.exportRaw())));
      const imported = await provider.importSecretKey("ML-KEM-768", { pem });
      expect(imported.exportRaw()).toEqual(receiving.exportRaw());
      expect(imported.toPem()).toBe(receiving.toPem());
    });
  });

  it.each([
    ["with CR LF line endings", (pem: string) => pem.replaceAll("\n", "\r\n")],
    ["without a final line break", (pem: string) => pem.trimEnd()],
    ["on one line", (pem: string) => pem.replaceAll(/\n(?!-)/g, "").replace("KEY-----", "KEY-----\n")],
    ["with blank lines around it", (pem: string) => `\n\n${pem}\n`],
    ["with text before it", (pem: string) => `Public-Key: ML-DSA-65\n${pem}`],
  ] as const)("%s", async (_name, change) => {
    const pem = change(signing.publicKey.toPem());
    expect(provider.importPublicKey("ML-DSA-65", { pem }).exportRaw()).toEqual(signing.publicKey.exportRaw());
  });

  describe("but rejects", () => {
    const raw = () => signing.publicKey.exportRaw();
    const publicPems: Record<string, () => string> = {
      "SubjectPublicKeyInfo with NULL parameters": () => spki(mlDsa65WithNull, raw()),
      "SubjectPublicKeyInfo with a byte after it": () => withTrailingByte(signing.publicKey.toPem()),
      "truncated SubjectPublicKeyInfo": () =>
        toPem("PUBLIC KEY", fromPem(signing.publicKey.toPem()).subarray(0, -1)),
      "SubjectPublicKeyInfo of a different algorithm": () => receiving.publicKey.toPem(),
      "a key of the wrong length": () => spki(mlDsa65, raw().subarray(1)),
      "an indefinite length": () => toPem("PUBLIC KEY", fromPem(signing.publicKey.toPem()).with(1, 0x80)),
      "a secret key instead of a public key": () => signing.toPem(),
      "a certificate": () => signing.publicKey.toPem().replaceAll("PUBLIC KEY", "CERTIFICATE"),
      "two blocks": () => signing.publicKey.toPem().repeat(2),
    };

    it.each(Object.entries(publicPems))("%s", async (_name, pem) => {
      expect(await refusal(() => provider.importPublicKey("ML-DSA-65", { pem: pem() }))).toBe("INVALID_KEY");
    });

    const both = (seed: Uint8Array, expanded: Uint8Array) => sequence(tlv(0x04, seed), tlv(0x04, expanded));
    const secretPems: Record<string, [Algorithm, () => string]> = {
      "PKCS#8 with a bare seed, as in early drafts": ["ML-DSA-65", () => pkcs8(mlDsa65, seedOf(signing))],
      "PKCS#8 with a bare expanded key, as in early drafts": [
        "ML-DSA-65",
        () => pkcs8(mlDsa65, signing.exportRaw()),
      ],
      "PKCS#8 with NULL parameters": ["ML-DSA-65", () => pkcs8(mlDsa65WithNull, tlv(0x80, seedOf(signing)))],
      "PKCS#8 with a byte after it": ["ML-DSA-65", () => withTrailingByte(signing.toPem())],
      "PKCS#8 of version 1": ["ML-DSA-65", () => toPem("PRIVATE KEY", fromPem(signing.toPem()).with(4, 1))],
      "PKCS#8 of a different algorithm": ["ML-DSA-65", () => receiving.toPem()],
      "PKCS#8 of a different parameter set": ["ML-DSA-87", () => signing.toPem()],
      "a public key instead of a secret key": ["ML-DSA-65", () => signing.publicKey.toPem()],
      "an ML-DSA seed that does not match the expanded key": [
        "ML-DSA-65",
        () => pkcs8(mlDsa65, both(flipBit(seedOf(signing), 0), signing.exportRaw())),
      ],
      "an ML-KEM seed that does not match the expanded key": [
        "ML-KEM-768",
        () => pkcs8(mlKem768, both(flipBit(seedOf(receiving), 63), receiving.exportRaw())),
      ],
      "an inconsistent expanded key": [
        "ML-DSA-65",
        () => pkcs8(mlDsa65, tlv(0x04, flipBit(signing.exportRaw(), 64))),
      ],
      "a seed of the wrong length": ["ML-DSA-65", () => pkcs8(mlDsa65, tlv(0x80, new Uint8Array(31)))],
    };

    it.each(Object.entries(secretPems))("%s", async (_name, [algorithm, pem]) => {
      expect(await refusal(() => provider.importSecretKey(algorithm, { pem: pem() }))).toBe("INVALID_KEY");
    });

    it("an ECDSA key with a different key's public key", async () => {
      const [mine, theirs] = await Promise.all([1, 2].map(() => provider.generateKeyPair("ECDSA-P256")));
      const der = fromPem(mine?.secretKey.toPem() ?? "");
      der.set(theirs?.publicKey.exportRaw() ?? [], der.length - 65);
      const pem = toPem("PRIVATE KEY", der);
      expect(await refusal(() => provider.importSecretKey("ECDSA-P256", { pem }))).toBe("INVALID_KEY");
    });
  });

  it("of an ECDSA key without its public key (RFC 5915, section 3)", async () => {
    const { secretKey, publicKey } = await provider.generateKeyPair("ECDSA-P256");
    const ecPrivateKey = sequence(Uint8Array.of(2, 1, 1), tlv(0x04, secretKey.exportRaw()));
    const curve = Uint8Array.fromHex("06072a8648ce3d020106082a8648ce3d030107");
    const imported = await provider.importSecretKey("ECDSA-P256", {
      pem: pkcs8(sequence(curve), ecPrivateKey),
    });
    expect(imported.publicKey.exportRaw()).toEqual(publicKey.exportRaw());
    expect(imported.toPem()).toBe(secretKey.toPem());
  });

  it("and reports a different algorithm by name", () => {
    const attempt = () => provider.importPublicKey("ML-DSA-65", { pem: receiving.publicKey.toPem() });
    expect(attempt).toThrow("the PEM block contains an ML-KEM-768 key; expected ML-DSA-65");
  });
});

/** A second, independent DER writer: tests must not trust the writer under test. */
function tlv(tag: number, ...content: Uint8Array[]): Uint8Array {
  const body = Buffer.concat(content);
  const length =
    body.length < 128 ? [body.length] : [0x80 + (body.length < 256 ? 1 : 2), ...longLength(body.length)];
  return Uint8Array.from(Buffer.concat([Uint8Array.of(tag, ...length), body]));
}

function longLength(length: number): number[] {
  return length < 256 ? [length] : [length >> 8, length & 0xff];
}

function sequence(...content: Uint8Array[]): Uint8Array {
  return tlv(0x30, ...content);
}

function spki(algorithm: Uint8Array, publicKey: Uint8Array): string {
  return toPem("PUBLIC KEY", sequence(algorithm, tlv(0x03, Uint8Array.of(0), publicKey)));
}

function pkcs8(algorithm: Uint8Array, privateKey: Uint8Array): string {
  return toPem("PRIVATE KEY", sequence(Uint8Array.of(2, 1, 0), algorithm, tlv(0x04, privateKey)));
}

function toPem(label: string, der: Uint8Array): string {
  const lines = der.toBase64().replaceAll(/(.{64})(?=.)/g, "$1\n");
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`;
}

function fromPem(pem: string): Uint8Array {
  return Uint8Array.fromBase64(pem.replaceAll(/-----.*-----/g, ""));
}

function withTrailingByte(pem: string): string {
  const label = pem.includes("PRIVATE") ? "PRIVATE KEY" : "PUBLIC KEY";
  return toPem(label, Uint8Array.of(...fromPem(pem), 0));
}
