/** Secret key files from other programs: every form of every family, and invalid files. */
import { generateKeyPairSync } from "node:crypto";
import { afterAll, describe, expect, it } from "vitest";
import {
  type Algorithm,
  algorithms,
  compositeNames,
  kemNames,
  mlDsaNames,
} from "../../src/crypto/algorithms.ts";
import { encodeBase64url } from "../../src/crypto/base64url.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { toPublicJwk } from "../../src/crypto/jwk.ts";
import { encodePkcs8 } from "../../src/crypto/key-encoding.ts";
import { importKeyFile } from "../../src/crypto/key-file.ts";
import { encodePem } from "../../src/crypto/pem.ts";
import type { SecretKey } from "../../src/crypto/provider.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { describeProviders, makeKeyPairs } from "../support/crypto-providers.ts";
import draft from "../vectors/x-wing.json" with { type: "json" };
import { refusal } from "./refusal.ts";
import { der as tlv } from "./requests.ts";

/** All algorithms, except that the SLH-DSA sets differ in their lengths only. */
const families = [...mlDsaNames, ...kemNames, ...compositeNames, "SLH-DSA-SHA2-128f", "ECDSA-P256"] as const;

/** SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7). */
const spki = (algorithm: Uint8Array, publicKey: Uint8Array) =>
  tlv(0x30, algorithm, tlv(0x03, Uint8Array.of(0), publicKey));

/** A file in one form. */
type Form = readonly [name: string, file: Uint8Array, hasSeed: boolean];

/** All forms of a key: its parts in DER and PEM, and the bare bytes. */
function formsOf(secretKey: SecretKey): Form[] {
  const { algorithm } = secretKey;
  const [raw, seed] = [secretKey.exportRaw(), secretKey.exportSeed()];
  const parts = listParts(algorithm, raw, seed, secretKey.publicKey.exportRaw());
  const encoded = parts.flatMap(([name, values]): Form[] => {
    const der = encodePkcs8(algorithm, values);
    const pem = bytesOf(encodePem("PRIVATE KEY", der));
    const hasSeed = "seed" in values;
    return ["DER", "PEM"].map((form, i) => [`PKCS#8 in ${form} with ${name}`, i === 0 ? der : pem, hasSeed]);
  });
  const bareSeed: Form[] = seed === undefined ? [] : [["the bare seed", seed, true]];
  return [...encoded, ...bareSeed, ["the bare secret key", raw, algorithm === "X-Wing"]];
}

function listParts(
  algorithm: Algorithm,
  raw: Uint8Array,
  seed: Uint8Array | undefined,
  publicKey: Uint8Array,
) {
  if (algorithm === "X-Wing" && seed !== undefined) return [["the seed", { seed }]] as const;
  if (seed !== undefined) {
    return [
      ["the seed", { seed }],
      ["the expanded key", { raw }],
      ["both", { seed, raw }],
    ] as const;
  }
  if (algorithm !== "ECDSA-P256") return [["the raw key", { raw }]] as const;
  return [
    ["the scalar", { raw }],
    ["the scalar and the point", { raw, publicKey }],
  ] as const;
}

describeProviders("a key file for %s", (provider) => {
  it.each(families)(
    "for %s gives the same key in every form, and so does its public key",
    async (algorithm) => {
      const { secretKey } = await provider.generateKeyPair(algorithm);
      const forms = formsOf(secretKey);
      for (const material of [{ raw: secretKey.publicKey.exportRaw() }, { pem: secretKey.publicKey.toPem() }])
        expect(provider.importPublicKey(algorithm, material).exportRaw()).toEqual(
          secretKey.publicKey.exportRaw(),
        );
      const seen = await Promise.all(
        forms.map(async ([form, file]) => {
          const before = Uint8Array.from(file);
          const imported = await importKeyFile(provider, algorithm, file);
          expect(file, `${form} is left unchanged`).toEqual(before);
          const again = await provider.importSecretKey(algorithm, { pem: imported.toPem() });
          expect(again.exportRaw(), `${form}, written and read`).toEqual(imported.exportRaw());
          const [raw, publicKey] = [imported.exportRaw(), imported.publicKey.exportRaw()];
          const hasSeed = imported.exportSeed() !== undefined;
          return { form, algorithm: imported.algorithm, raw, publicKey, hasSeed };
        }),
      );
      const [raw, publicKey] = [secretKey.exportRaw(), secretKey.publicKey.exportRaw()];
      expect(seen).toEqual(forms.map(([form, , hasSeed]) => ({ form, algorithm, raw, publicKey, hasSeed })));
    },
  );

  it("rejects DER whose seed and expanded key, or scalar and point, do not match", async () => {
    const pairOf = await makeKeyPairs(provider, ["ML-DSA-65", "ML-KEM-768", "ECDSA-P256"]);
    const { publicKey } = await provider.generateKeyPair("ECDSA-P256");
    const bothOf = (algorithm: Algorithm) => {
      const { secretKey } = pairOf(algorithm);
      const seed = flipBit(secretKey.exportSeed() ?? new Uint8Array());
      return encodePkcs8(algorithm, { seed, raw: secretKey.exportRaw() });
    };
    const raw = pairOf("ECDSA-P256").secretKey.exportRaw();
    const ofTwo = encodePkcs8("ECDSA-P256", { raw, publicKey: publicKey.exportRaw() });
    for (const [algorithm, der] of [
      ["ML-DSA-65", bothOf("ML-DSA-65")],
      ["ML-KEM-768", bothOf("ML-KEM-768")],
      ["ECDSA-P256", ofTwo],
    ] as const)
      expect(await refusal(() => importKeyFile(provider, algorithm, der))).toBe("INVALID_KEY");
  });
});

describe("a key file", async () => {
  const provider = await createCryptoProvider("openssl");
  afterAll(() => provider.close());

  it.each([
    ["ml-dsa-65", "ML-DSA-65"],
    ["ml-kem-768", "ML-KEM-768"],
    ["slh-dsa-sha2-128f", "SLH-DSA-SHA2-128f"],
  ] as const)("written by node:crypto is accepted: %s", async (type, algorithm) => {
    const { privateKey, publicKey } = generateKeyPairSync(type as "ml-dsa-65");
    for (const format of ["pem", "der"] as const) {
      const file = privateKey.export({ type: "pkcs8", format: format as "der" });
      const imported = await importKeyFile(provider, algorithm, Buffer.from(file));
      expect(Buffer.from(imported.publicKey.exportRaw())).toEqual(publicKey.export({ format: "raw-public" }));
    }
  });

  it("never has two forms of the same length for one algorithm", () => {
    for (const { name, seedBytes = 0, secretKeyBytes, publicKeyBytes } of Object.values(algorithms)) {
      const [raw, publicKey] = [new Uint8Array(secretKeyBytes), new Uint8Array(publicKeyBytes)];
      const seed = seedBytes === 0 ? undefined : new Uint8Array(seedBytes);
      const documents = listParts(name, raw, seed, publicKey).map(
        ([, parts]) => encodePkcs8(name, parts).length,
      );
      const lengths = new Set([seedBytes, secretKeyBytes, ...documents]);
      expect(lengths.size, name).toBe(documents.length + (name === "X-Wing" ? 1 : 2));
    }
  });

  it.each([
    ["ML-DSA-65", "a JWK (RFC 9964), or the seed, 32 bytes, or the expanded secret key, 4032 bytes"],
    ["SLH-DSA-SHAKE-256s", "the raw secret key, 128 bytes"],
    ["X-Wing", "the seed, 32 bytes"],
  ] as const)("in no known form is rejected with a list of the %s forms", async (algorithm, bare) => {
    const forms = `PKCS#8 in PEM, or PKCS#8 in strict DER, or ${bare}`;
    const message = `33 bytes are not an ${algorithm} secret key in a known form: ${forms}`;
    const reading = importKeyFile(provider, algorithm, new Uint8Array(33));
    await expect(reading).rejects.toMatchObject({ code: "INVALID_KEY", message });
  });

  it("for a different algorithm is rejected with the algorithm's name, in DER and PEM", async () => {
    const { secretKey } = await provider.generateKeyPair("ML-KEM-768");
    const der = encodePkcs8("ML-KEM-768", { raw: secretKey.exportRaw() });
    const wrong = "contains an ML-KEM-768 key; expected ML-DSA-65";
    for (const file of [der, bytesOf(secretKey.toPem())])
      await expect(importKeyFile(provider, "ML-DSA-65", file)).rejects.toThrow(wrong);
  });

  it("that is PEM as long as a bare key is read as PEM", async () => {
    const pem = bytesOf(draft.example.privateKeyPem);
    expect(pem).toHaveLength(algorithms["SLH-DSA-SHA2-256f"].secretKeyBytes);
    await expect(importKeyFile(provider, "SLH-DSA-SHA2-256f", pem)).rejects.toThrow("contains an X-Wing key");
  });

  describe("in PKCS#8 of RFC 5958", async () => {
    const algorithm = "ML-DSA-44";
    const name = tlv(0x30, Uint8Array.fromHex("0609608648016503040311"));
    // friendlyName, as PKCS#12 tools write it.
    const friendlyName = Uint8Array.fromHex("06092a864886f70d010914");
    const attribute = tlv(0x30, friendlyName, tlv(0x31, tlv(0x1e, Uint8Array.fromHex("006b00650079"))));
    const attributes = tlv(0xa0, attribute);
    const zero = Uint8Array.of(0);
    const bits = (publicKey: Uint8Array) => tlv(0x81, zero, publicKey);
    const write = (version: number, ...rest: Uint8Array[]) =>
      tlv(0x30, tlv(0x02, Uint8Array.of(version)), name, ...rest);
    const secretKey = await provider.importSecretKey(algorithm, { seed: new Uint8Array(32) });
    const [publicKey, raw, seed] = [
      secretKey.publicKey.exportRaw(),
      secretKey.exportRaw(),
      new Uint8Array(32),
    ];
    const forms = {
      seed: tlv(0x04, tlv(0x80, seed)),
      expandedKey: tlv(0x04, tlv(0x04, raw)),
      both: tlv(0x04, tlv(0x30, tlv(0x04, seed), tlv(0x04, raw))),
    };
    const read = (file: Uint8Array) => importKeyFile(provider, algorithm, file);

    it.each(Object.entries(forms))(
      "is accepted with its public key, with attributes and with both: %s",
      async (_form, form) => {
        for (const file of [
          write(1, form, bits(publicKey)),
          write(0, form, attributes),
          write(0, form, tlv(0xa0)),
          write(1, form, attributes, bits(publicKey)),
        ]) {
          const pem = bytesOf(encodePem("PRIVATE KEY", file));
          for (const given of [file, pem])
            expect((await read(given)).exportRaw()).toEqual(secretKey.exportRaw());
        }
      },
    );

    it.each<[string, Uint8Array, string]>([
      [
        "another public key",
        write(1, forms.seed, bits(flipBit(publicKey))),
        "does not match its private key",
      ],
      [
        "a cut public key",
        write(1, forms.seed, bits(publicKey.subarray(1))),
        "does not match its private key",
      ],
      ["a public key in version 0", write(0, forms.seed, bits(publicKey)), "version 0 with a public key"],
      ["no public key in version 1", write(1, forms.seed, attributes), "version 1 without a public key"],
      ["version 2", write(2, forms.seed, bits(publicKey)), "version 2 with a public key"],
      ["stray bits", write(1, forms.seed, tlv(0x81, Uint8Array.of(1), publicKey)), "in a known form"],
      ["an explicit tag", write(1, forms.seed, tlv(0xa1, tlv(0x03, zero, publicKey))), "in a known form"],
      ["two public keys", write(1, forms.seed, bits(publicKey), bits(publicKey)), "in a known form"],
      ["attributes after it", write(1, forms.seed, bits(publicKey), attributes), "in a known form"],
      ["a bare seed", write(0, tlv(0x04, seed)), "early drafts; give these 32 bytes as a raw key"],
      ["a bare expanded key", write(0, tlv(0x04, raw)), "give these 2560 bytes as a raw key"],
      ["a wrong length", write(0, tlv(0x04, new Uint8Array(7))), "with 7 bytes, which match no form"],
    ])("is rejected with %s", async (_, file, text) => {
      const message = expect.stringContaining(text);
      await expect(read(file)).rejects.toMatchObject({ code: "INVALID_KEY", message });
    });
  });

  describe("that is a JWK", async () => {
    const secretKey = await provider.importSecretKey("ML-DSA-65", { seed: new Uint8Array(32) });
    const publicKey = secretKey.publicKey.exportRaw();
    const { kid, use, ...members } = toPublicJwk(secretKey.publicKey);
    const jwk = { ...members, priv: encodeBase64url(new Uint8Array(32)) };
    const read = (members: object) =>
      importKeyFile(provider, "ML-DSA-65", bytesOf(JSON.stringify({ ...jwk, ...members })));

    it("is accepted, even with irrelevant members and a byte order mark", async () => {
      const more = { kid: "1", use: "sig", key_ops: ["sign"], "x-note": [1] };
      expect((await read(more)).exportRaw()).toEqual(secretKey.exportRaw());
      const text = `\uFEFF${JSON.stringify(jwk, undefined, 2)}\n`;
      const imported = await importKeyFile(provider, "ML-DSA-65", bytesOf(text));
      expect(imported.exportSeed()).toEqual(secretKey.exportSeed());
    });

    it.each<[string, object, string]>([
      ["another public key", { pub: encodeBase64url(flipBit(publicKey)) }, "does not match"],
      ["no priv", { priv: undefined }, "the JWK has no priv"],
      ["a short priv", { priv: "AAAA" }, "priv of the JWK must be the seed of ML-DSA-65: 32 bytes"],
      ["a priv with padding", { priv: `${jwk.priv}=` }, "priv of the JWK must be the seed"],
      ["the expanded key", { priv: encodeBase64url(secretKey.exportRaw()) }, "which RFC 9964 does not allow"],
      ["different operations", { key_ops: ["verify"] }, 'key_ops of the JWK must include "sign"'],
      ["a priv that is not a string", { priv: [1] }, "priv of the JWK must be the seed"],
      ["a JWK set", { keys: [] }, "the file is a JWK set"],
    ])("is rejected with %s", async (_, changed, text) => {
      const message = expect.stringContaining(text);
      await expect(read(changed)).rejects.toMatchObject({ code: "INVALID_KEY", message });
    });

    it("for a different algorithm is rejected with the algorithm's name", async () => {
      const file = bytesOf(JSON.stringify(jwk));
      await expect(importKeyFile(provider, "ML-DSA-44", file)).rejects.toThrow(
        "the JWK contains an ML-DSA-65 key; expected ML-DSA-44",
      );
    });
  });

  const seed = new Uint8Array(32);
  const der = encodePkcs8("ML-DSA-65", { seed });
  const seedForm = tlv(0x04, tlv(0x80, seed));
  const mlDsa65 = tlv(0x30, Uint8Array.fromHex("0609608648016503040312"));
  const withNull = tlv(0x30, Uint8Array.fromHex("06096086480165030403120500"));
  const hostile: Record<string, Uint8Array> = {
    "is empty": new Uint8Array(),
    "is longer than any key": new Uint8Array(16_385),
    "is truncated DER": der.subarray(0, -1),
    "is DER with an extra byte": Uint8Array.of(...der, 0),
    "has parameters of NULL": tlv(0x30, tlv(0x02, Uint8Array.of(0)), withNull, seedForm),
    "is a public key": bytesOf(encodePem("PUBLIC KEY", new Uint8Array(1974))),
    "is an encrypted key": bytesOf(encodePem("ENCRYPTED PRIVATE KEY", der)),
    "is PEM of something else": bytesOf(encodePem("PRIVATE KEY", new Uint8Array(54))),
    "is text": bytesOf("this is no key"),
    "is an expanded key of zeros": new Uint8Array(4032),
  };

  it.each(Object.entries(hostile))("that %s is rejected", async (_name, file) => {
    expect(await refusal(() => importKeyFile(provider, "ML-DSA-65", file))).toBe("INVALID_KEY");
  });

  it.each<[string, (der: Uint8Array) => Uint8Array]>([
    ["NULL parameters", (der) => spki(withNull, der.subarray(-1952))],
    ["a byte after it", (der) => Uint8Array.of(...der, 0)],
    ["its last byte missing", (der) => der.subarray(0, -1)],
    ["a key of the wrong length", (der) => spki(mlDsa65, der.subarray(-1951))],
    ["an indefinite length", (der) => der.with(1, 0x80)],
  ])("of a public key, SubjectPublicKeyInfo, is rejected with %s", async (_fault, change) => {
    const raw = (await provider.importSecretKey("ML-DSA-65", { seed })).publicKey.exportRaw();
    const read = (der: Uint8Array) =>
      provider.importPublicKey("ML-DSA-65", { pem: encodePem("PUBLIC KEY", der) });
    expect(read(spki(mlDsa65, raw)).exportRaw()).toEqual(raw);
    expect(await refusal(() => read(change(spki(mlDsa65, raw))))).toBe("INVALID_KEY");
  });

  it("that is a string, or an unknown algorithm, is the caller's mistake", async () => {
    const text = draft.example.privateKeyPem as unknown as Uint8Array;
    expect(await refusal(() => importKeyFile(provider, "X-Wing", text))).toBe("INVALID_ARGUMENT");
    expect(await refusal(() => importKeyFile(provider, "x-wing" as "X-Wing", seed))).toBe("INVALID_ARGUMENT");
  });
});
