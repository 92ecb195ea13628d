import { createPrivateKey, createPublicKey } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
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
import type { ProviderName } from "../../src/crypto/provider.ts";
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

describeProviders("CryptoProvider %s", (provider, name) => {
  it("reports the underlying library", () => {
    expect(provider.name).toBe(name);
    expect(provider.version).toMatch(versions[name]);
    expect(provider.cpuPath).toBe(name === "native" ? fastPath : undefined);
  });

  // x-wing.test.ts and composite.test.ts compare with the drafts what node:crypto cannot read.
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
    "creates %s signatures that the public key verifies, each time a different one",
    async (algorithm) => {
      const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
      const signature = await provider.sign(secretKey, message);
      expect(await provider.verify(publicKey, message, signature)).toBe(true);
      expect(await provider.verify(publicKey, new Uint8Array(), signature)).toBe(false);
      expect(await provider.verify(publicKey, message, flipBit(signature, signature.length - 1))).toBe(false);
      expect(await provider.sign(secretKey, message)).not.toEqual(signature);
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
    "gives both sides the same %s secret, and a different one for a wrong ciphertext",
    async (algorithm) => {
      const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
      const { ciphertext, sharedSecret } = await provider.encapsulate(publicKey);
      expect(ciphertext).toHaveLength(kemAlgorithms[algorithm].ciphertextBytes);
      expect(sharedSecret).toHaveLength(kemAlgorithms[algorithm].sharedSecretBytes);
      expect(await provider.decapsulate(secretKey, ciphertext)).toEqual(sharedSecret);
      const rejected = await provider.decapsulate(secretKey, flipBit(ciphertext, 0));
      expect(rejected).toHaveLength(32);
      expect(rejected).not.toEqual(sharedSecret);
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
