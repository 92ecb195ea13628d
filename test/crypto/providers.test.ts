import { createPrivateKey, createPublicKey } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { p256 } from "@noble/curves/nist.js";
import { ml_kem768_x25519 } from "@noble/post-quantum/hybrid.js";
import * as slhDsa from "@noble/post-quantum/slh-dsa.js";
import type { Signer } from "@noble/post-quantum/utils.js";
import { afterAll, describe, expect, it } from "vitest";
import {
  type AlgorithmInfo,
  algorithms,
  isSignatureAlgorithm,
  kemAlgorithms,
  kemNames,
  mlDsaNames,
  mlKemNames,
  type SlhDsaAlgorithm,
  slhDsaNames,
} from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { withFreshKeyPair, withFreshKeyPairs } from "../../src/crypto/fresh-key-pair.ts";
import { mlDsa, mlKem } from "../../src/crypto/noble.ts";
import type { CryptoProvider, KeyPair, ProviderName, SecretKey } from "../../src/crypto/provider.ts";
import { flipBit } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";

const message = new TextEncoder().encode("a message");
const context = Uint8Array.of(1, 2, 3);
const versions: Record<ProviderName, RegExp> = {
  native: /^AWS-LC 5\.\d+\.\d+ \((AVX2|NEON|portable)\), OpenSSL 3\./,
  openssl: /^OpenSSL 3\./,
};

/** The code that AWS-LC must run on this machine; otherwise, slow code would go unnoticed. */
const fastPath =
  process.arch === "x64" && hasAvx2() ? "AVX2" : process.arch === "arm64" ? "NEON" : "portable";

/** Linux only: elsewhere, the portable code is expected, and a test that finds faster code fails. */
function hasAvx2(): boolean {
  return existsSync("/proc/cpuinfo") && /\bavx2\b/.test(readFileSync("/proc/cpuinfo", "utf8"));
}

/**
 * SLH-DSA sets with which to generate keys and sign. The native provider delegates SLH-DSA to OpenSSL, so one
 * set is enough there.
 */
const slhDsaSets: Record<
  ProviderName,
  { keys: readonly SlhDsaAlgorithm[]; signs: readonly SlhDsaAlgorithm[] }
> = {
  openssl: { keys: slhDsaNames, signs: slhDsaNames.filter((name) => name.endsWith("f")) },
  native: { keys: ["SLH-DSA-SHA2-128f"], signs: ["SLH-DSA-SHA2-128f"] },
};

const ecdsaForm = { format: "der", lowS: false } as const;

/** Signature algorithms of the noble library, an independent implementation. */
const nobleSigners: Readonly<Record<string, Pick<Signer, "sign" | "verify">>> = {
  ...mlDsa,
  ...Object.fromEntries(Object.entries(slhDsa).map(([name, set]) => [name.replaceAll("_", "-"), set])),
  "ECDSA-P256": {
    sign: (signed, secretKey) => p256.sign(signed, secretKey, ecdsaForm),
    verify: (signature, signed, publicKey) => p256.verify(signature, signed, publicKey, ecdsaForm),
  },
};

/** Its KEMs. */
const nobleKems = { ...mlKem, "X-Wing": ml_kem768_x25519 };

function nobleSignerOf(algorithm: string): Pick<Signer, "sign" | "verify"> {
  const signer = nobleSigners[algorithm] ?? nobleSigners[algorithm.toLowerCase()];
  if (signer === undefined) throw new Error(`noble does not sign with ${algorithm}`);
  return signer;
}

describeProviders("CryptoProvider %s", (provider, name) => {
  it("reports the underlying library", () => {
    expect(provider.name).toBe(name);
    expect(provider.version).toMatch(versions[name]);
    expect(provider.cpuPath).toBe(name === "native" ? fastPath : undefined);
  });

  // composite.test.ts compares with the drafts what node:crypto cannot read.
  it.each([...mlDsaNames, ...slhDsaSets[name].keys, "ECDSA-P256", ...mlKemNames] as const)(
    "generates %s keys with the lengths in the table, and writes them as node:crypto does",
    async (algorithm) => {
      const info: AlgorithmInfo = algorithms[algorithm];
      const { publicKey, secretKey } = await provider.generateKeyPair(info.name);
      expect(secretKey.algorithm).toBe(info.name);
      expect(secretKey.publicKey.exportRaw()).toEqual(publicKey.exportRaw());
      expect(publicKey.exportRaw()).toHaveLength(info.publicKeyBytes);
      expect(secretKey.exportRaw()).toHaveLength(info.secretKeyBytes);
      expect(secretKey.exportSeed()?.length).toBe(info.seedBytes);
      const nodeKey = createPrivateKey(secretKey.toPem());
      expect(nodeKey.export({ format: "pem", type: "pkcs8" })).toBe(secretKey.toPem());
      expect(createPublicKey(nodeKey).export({ format: "pem", type: "spki" })).toBe(publicKey.toPem());
    },
  );

  it.each([...mlDsaNames, ...slhDsaSets[name].signs, "ECDSA-P256"] as const)(
    "creates %s signatures that the public key verifies, also with noble, each time a different one",
    async (algorithm) => {
      const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
      const signature = await provider.sign(secretKey, message);
      expect(await provider.verify(publicKey, message, signature)).toBe(true);
      expect(await provider.verify(publicKey, new Uint8Array(), signature)).toBe(false);
      expect(await provider.verify(publicKey, message, flipBit(signature, signature.length - 1))).toBe(false);
      expect(await provider.sign(secretKey, message)).not.toEqual(signature);
      expect(nobleSignerOf(algorithm).verify(signature, message, publicKey.exportRaw())).toBe(true);
    },
  );

  it.each([...mlDsaNames, "SLH-DSA-SHA2-128f", "ECDSA-P256"] as const)(
    "verifies %s signatures by noble",
    async (algorithm) => {
      const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
      const signature = nobleSignerOf(algorithm).sign(message, secretKey.exportRaw());
      expect(await provider.verify(publicKey, message, signature)).toBe(true);
    },
  );

  it.each([...mlDsaNames, "SLH-DSA-SHA2-128f"] as const)(
    "binds %s signatures to their context",
    async (algorithm) => {
      const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
      const contexts = [context, new Uint8Array(255), new Uint8Array()];
      for (const signed of contexts) {
        const signature = await provider.sign(secretKey, message, { context: signed });
        const verdicts = contexts.map((used) =>
          provider.verify(publicKey, message, signature, { context: used }),
        );
        expect(await Promise.all(verdicts)).toEqual(contexts.map((used) => used === signed));
      }
      const plain = await provider.sign(secretKey, message);
      expect(await provider.verify(publicKey, message, plain, { context: new Uint8Array() })).toBe(true);
    },
  );

  it("signs the message as it was when called", async () => {
    const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-65");
    const changing = Uint8Array.from(message);
    const changingContext = Uint8Array.from(context);
    const signing = provider.sign(secretKey, changing, { context: changingContext });
    changing.fill(0);
    changingContext.fill(0);
    expect(await provider.verify(publicKey, message, await signing, { context })).toBe(true);
  });

  it("writes and reads ECDSA signatures as DER and as r ‖ s", async () => {
    const { publicKey, secretKey } = await provider.generateKeyPair("ECDSA-P256");
    const fixed = await provider.sign(secretKey, message, { ecdsaEncoding: "ieee-p1363" });
    expect(fixed).toHaveLength(64);
    expect(await provider.verify(publicKey, message, fixed, { ecdsaEncoding: "ieee-p1363" })).toBe(true);
    expect(await provider.verify(publicKey, message, fixed)).toBe(false);
    const der = await provider.sign(secretKey, message);
    expect(der[0]).toBe(0x30);
    expect(await provider.verify(publicKey, message, der, { ecdsaEncoding: "ieee-p1363" })).toBe(false);
  });

  it.each(kemNames)(
    "gives both sides the same %s secret, and a different one for a wrong ciphertext, as noble does",
    async (algorithm) => {
      const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
      const { ciphertext, sharedSecret } = await provider.encapsulate(publicKey);
      expect(ciphertext).toHaveLength(kemAlgorithms[algorithm].ciphertextBytes);
      expect(sharedSecret).toHaveLength(kemAlgorithms[algorithm].sharedSecretBytes);
      expect(await provider.decapsulate(secretKey, ciphertext)).toEqual(sharedSecret);
      const wrong = flipBit(ciphertext, 0);
      const rejected = await provider.decapsulate(secretKey, wrong);
      expect(rejected).toHaveLength(32);
      expect(rejected).not.toEqual(sharedSecret);
      const [noble, raw] = [nobleKems[algorithm], secretKey.exportRaw()];
      expect([ciphertext, wrong].map((given) => noble.decapsulate(given, raw))).toEqual([
        sharedSecret,
        rejected,
      ]);
      const sent = noble.encapsulate(publicKey.exportRaw());
      expect(await provider.decapsulate(secretKey, sent.cipherText)).toEqual(sent.sharedSecret);
    },
  );

  it("returns copies, so that wiping them does not affect the key", async () => {
    const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-44");
    const raw = secretKey.exportRaw();
    const imported = await provider.importSecretKey("ML-DSA-44", { raw });
    const importedPublic = provider.importPublicKey("ML-DSA-44", { raw: Buffer.from(publicKey.exportRaw()) });
    for (const copy of [raw, imported.exportRaw(), secretKey.exportRaw(), publicKey.exportRaw()])
      copy.fill(0);
    const signature = await provider.sign(imported, message);
    expect(await provider.verify(publicKey, message, signature)).toBe(true);
    expect(await provider.verify(importedPublic, message, signature)).toBe(true);
  });

  it("hides secrets from JSON.stringify", async () => {
    const { secretKey } = await provider.generateKeyPair("ML-DSA-44");
    const shown = JSON.stringify({ algorithm: "ML-DSA-44", publicKey: { algorithm: "ML-DSA-44" } });
    expect(JSON.stringify(secretKey)).toBe(shown);
  });
});

describe("the table of algorithms", () => {
  it("does not mistake properties of Object.prototype for algorithms", () => {
    expect(isSignatureAlgorithm("constructor")).toBe(false);
    expect(isSignatureAlgorithm("__proto__")).toBe(false);
  });

  it("is immutable", () => {
    expect(Object.isFrozen(algorithms)).toBe(true);
    expect(Object.values(algorithms).every(Object.isFrozen)).toBe(true);
  });
});

const provider = await createCryptoProvider("openssl");

afterAll(() => provider.close());
const isErased = (secretKey: SecretKey): boolean => {
  try {
    secretKey.exportSeed();
    return false;
  } catch {
    return true;
  }
};

describe("new key pairs", () => {
  type Use = (pairs: readonly KeyPair[]) => Promise<void>;
  const makers: Record<string, (use: Use) => Promise<void>> = {
    one: (use) => withFreshKeyPair(provider, "ML-DSA-44", (pair) => use([pair])),
    several: (use) => withFreshKeyPairs(provider, ["ML-DSA-44", "ML-DSA-65"], use),
  };
  it.each(Object.entries(makers))("are erased after use, even if it fails: %s", async (_what, make) => {
    for (const error of [undefined, new Error("use failed")]) {
      let made: readonly KeyPair[] = [];
      const making = make(async (pairs) => {
        made = pairs;
        expect(pairs.map(({ secretKey }) => isErased(secretKey))).not.toContain(true);
        if (error !== undefined) throw error;
      });
      expect(await making.catch((reason: unknown) => reason)).toBe(error);
      expect(made.map(({ secretKey }) => secretKey.algorithm)).toEqual(
        ["ML-DSA-44", "ML-DSA-65"].slice(0, made.length),
      );
      expect(made.map(({ secretKey }) => isErased(secretKey))).not.toContain(false);
    }
  });

  it("are erased if one of them cannot be generated", async () => {
    const generated: SecretKey[] = [];
    const failing: Pick<CryptoProvider, "generateKeyPair"> = {
      async generateKeyPair(algorithm) {
        if (algorithm === "ML-DSA-65") throw new Error("no randomness");
        const pair = await provider.generateKeyPair(algorithm);
        generated.push(pair.secretKey);
        return pair;
      },
    };
    const use = () => Promise.reject(new Error("used without all pairs"));
    await expect(withFreshKeyPairs(failing, ["ML-DSA-65", "ML-DSA-44"], use)).rejects.toThrow(
      "no randomness",
    );
    expect(generated.map(isErased)).toEqual([true]);
  });
});
