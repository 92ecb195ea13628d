import { hash } from "node:crypto";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  type MlDsaAlgorithm,
  mlDsaNames,
  mlKemNames,
  signatureAlgorithms,
} from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { NativeAddon, NativeSecretKey } from "../../src/crypto/native/addon.ts";
import {
  knownAnswers,
  knownContext,
  knownMessage,
  testKnownAnswers,
} from "../../src/crypto/native/known-answers.ts";
import {
  loadNative,
  manifestFile,
  type NativeManifest,
  nativeFile,
  nativeFolder,
  nativeTarget,
  nativeVersion,
} from "../../src/crypto/native/load.ts";
import { mlDsa, mlKem } from "../../src/crypto/noble.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { flipBit } from "../support/bytes.ts";
import { isNativeSkipped, nativeNeed } from "../support/crypto-providers.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { refusal } from "./refusal.ts";

const message = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);
const noContext = new Uint8Array();

function loadAddon(): NativeAddon {
  const build = loadNative();
  if (build.kind !== "loaded") throw new Error(`the native library is ${build.kind}; run: npm run native`);
  return build.addon;
}

/** Copies the built library for a test that changes its files. */
function copyBuild(change: (folder: string) => void): string {
  const folder = makeTemporaryDirectory();
  cpSync(nativeFolder, folder, { recursive: true });
  change(folder);
  return folder;
}

function changeManifest(folder: string, change: Partial<NativeManifest>): void {
  const path = join(folder, manifestFile);
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...change }));
}

/** Replaces the library and updates its digest in the manifest. */
function replaceLibrary(folder: string, bytes: Uint8Array): void {
  writeFileSync(join(folder, nativeFile), bytes);
  changeManifest(folder, { sha256: hash("sha256", bytes) });
}

describe.skipIf(isNativeSkipped)(`the native library${nativeNeed}`, () => {
  it("has the version in Cargo.toml, which the loader requires", () => {
    const cargo = readFileSync(join(nativeFolder, "../Cargo.toml"), "utf8");
    expect(cargo).toContain(`\nversion = "${nativeVersion}"\n`);
    expect(loadAddon().version()).toBe(nativeVersion);
  });

  const faults: Record<string, { change: (folder: string) => void; reason: RegExp }> = {
    "with a changed byte": {
      change: (folder) =>
        writeFileSync(join(folder, nativeFile), flipBit(readFileSync(join(folder, nativeFile)), 100_000)),
      reason: /is damaged: its SHA-256 does not match the manifest$/,
    },
    "with a different version": {
      change: (folder) => changeManifest(folder, { version: "0.0.9" }),
      reason: /has version 0\.0\.9, but this program requires \d+\.\d+\.\d+$/,
    },
    "for a different processor": {
      change: (folder) => changeManifest(folder, { target: "linux-riscv64" }),
      reason: new RegExp(`is built for linux-riscv64, but this system is ${nativeTarget}$`),
    },
    "without a manifest": {
      change: (folder) => writeFileSync(join(folder, manifestFile), ""),
      reason: /has no qsp-native\.json next to it$/,
    },
    "that matches its manifest but that the system rejects": {
      change: (folder) => replaceLibrary(folder, new TextEncoder().encode("no library")),
      reason: /does not load: \S[^\n]*$/,
    },
  };

  it.each(Object.entries(faults))("%s is rejected with the reason", async (_what, { change, reason }) => {
    const folder = copyBuild(change);
    expect(loadNative(folder)).toEqual({ kind: "unusable", reason: expect.stringMatching(reason) });
    const attempt = createCryptoProvider("native", { nativeFolder: folder });
    await expect(attempt).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringMatching(/^the native provider cannot be used: .*; run: npm run native$/),
    });
    const onFallback = vi.fn();
    const provider = await createCryptoProvider("auto", { nativeFolder: folder, onFallback });
    await provider.close();
    expect(provider.name).toBe("openssl");
    expect(onFallback.mock.calls).toEqual([
      [
        expect.stringMatching(
          /^using OpenSSL instead of the native provider: .*; rebuild it with npm run native$/,
        ),
      ],
    ]);
  });

  it("is used by auto, without a message", async () => {
    const onFallback = vi.fn();
    const provider = await createCryptoProvider("auto", { onFallback });
    await provider.close();
    expect([provider.name, onFallback.mock.calls]).toEqual(["native", []]);
  });

  it.each(["sign", "derive", "decapsulate"] as const)(
    "is not used by auto if it fails the %s known-answer test",
    async (operation) => {
      const addon = loadAddon();
      await expect(testKnownAnswers(breakAddon(addon, operation))).rejects.toMatchObject({
        code: "SELF_TEST_FAILED",
      });
      await testKnownAnswers(addon);
    },
  );

  /** A library with a fault in one operation of one parameter set. */
  function breakAddon(addon: NativeAddon, operation: "sign" | "derive" | "decapsulate"): NativeAddon {
    const broken = (key: NativeSecretKey): NativeSecretKey => ({
      publicKey: () => key.publicKey(),
      exportExpanded: () => flipIf(operation === "derive", key.exportExpanded()),
      exportSeed: () => key.exportSeed(),
      erase: () => key.erase(),
      sign: (...args) => key.sign(...args),
      signMu: (mu) => key.signMu(mu),
      signDeterministic: async (...args) =>
        flipIf(operation === "sign", await key.signDeterministic(...args)),
      decapsulate: async (text) => flipIf(operation === "decapsulate", await key.decapsulate(text)),
    });
    const set = operation === "decapsulate" ? "ML-KEM-1024" : "ML-DSA-87";
    return {
      ...addon,
      importSecretKey: async (algorithm, ...parts) => {
        const key = await addon.importSecretKey(algorithm, ...parts);
        return key !== null && algorithm === set ? broken(key) : key;
      },
    };
  }

  function flipIf(isBroken: boolean, bytes: Uint8Array): Uint8Array {
    return isBroken ? flipBit(bytes, 7) : bytes;
  }

  it.each(mlDsaNames)("%s signs without randomness as noble does", async (algorithm) => {
    const { secretKey, publicKey } = mlDsa[algorithm].keygen(knownSeed(32));
    const options = { context: knownContext, extraEntropy: false } as const;
    const signature = mlDsa[algorithm].sign(knownMessage, secretKey, options);
    expect(digest(publicKey, secretKey, signature)).toBe(knownAnswers[algorithm]);
  });

  it.each(mlKemNames)("%s rejects a wrong ciphertext as noble does", (algorithm) => {
    const { secretKey, publicKey } = mlKem[algorithm].keygen(knownSeed(64));
    const ciphertext = new Uint8Array(mlKem[algorithm].lengths.cipherText ?? 0);
    const sharedSecret = mlKem[algorithm].decapsulate(ciphertext, secretKey);
    expect(digest(publicKey, secretKey, sharedSecret)).toBe(knownAnswers[algorithm]);
  });

  const knownSeed = (length: number) => Uint8Array.from({ length }, (_, i) => i);
  const digest = (...parts: Uint8Array[]) => hash("sha256", Buffer.concat(parts));
});

describe("auto without a native library", () => {
  it("uses OpenSSL, without a message", async () => {
    const onFallback = vi.fn();
    const provider = await createCryptoProvider("auto", {
      nativeFolder: makeTemporaryDirectory(),
      onFallback,
    });
    await provider.close();
    expect([provider.name, onFallback.mock.calls]).toEqual(["openssl", []]);
  });

  it("fails if native was requested, naming the build command", async () => {
    const attempt = createCryptoProvider("native", { nativeFolder: makeTemporaryDirectory() });
    await expect(attempt).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "the native provider cannot be used: it is not built; run: npm run native",
    });
  });
});

describe.skipIf(isNativeSkipped)(`a native key${nativeNeed}`, () => {
  let provider: CryptoProvider;
  beforeAll(async () => {
    provider = await createCryptoProvider("native");
  });
  afterAll(() => provider.close());

  it("that is erased while signing finishes those signatures and rejects the next", async () => {
    const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-65");
    const signing = Array.from({ length: 50 }, () => provider.sign(secretKey, message));
    secretKey.erase();
    const verdicts = (await Promise.all(signing)).map((signature) =>
      provider.verify(publicKey, message, signature),
    );
    expect(new Set(await Promise.all(verdicts))).toEqual(new Set([true]));
    expect(await refusal(() => provider.sign(secretKey, message))).toBe("CLOSED");
  });

  it("without references is not garbage-collected while it signs", async () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage: () => void = runInNewContext("gc");
    const publicKeys = [];
    const signing = [];
    for (let i = 0; i < 20; i++) {
      const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-44");
      publicKeys.push(publicKey);
      signing.push(provider.sign(secretKey, message));
    }
    collectGarbage();
    const signatures = await Promise.all(signing);
    const verdicts = publicKeys.map((publicKey, i) =>
      provider.verify(publicKey, message, signatures[i] ?? noContext),
    );
    expect(await Promise.all(verdicts)).toEqual(publicKeys.map(() => true));
  });

  it.each(["shared memory", "a part of a larger buffer"])("signs a message in %s", async (memory) => {
    const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-44");
    const buffer = memory === "shared memory" ? new SharedArrayBuffer(1100) : new ArrayBuffer(1100);
    const view = new Uint8Array(buffer, 50, 1000);
    view.set(message);
    expect(await provider.verify(publicKey, message, await provider.sign(secretKey, view))).toBe(true);
  });

  it.each(mlDsaNames)("%s rejects wrong lengths in the library itself", async (algorithm: MlDsaAlgorithm) => {
    const addon = loadAddon();
    const key = await addon.generateKeyPair(algorithm);
    const wrong = new Uint8Array(signatureAlgorithms[algorithm].publicKeyBytes - 1);
    await expect(key.signMu(new Uint8Array(63))).rejects.toThrow(/mu has 63 bytes instead of 64/);
    await expect(key.sign(message, new Uint8Array(256))).rejects.toThrow(/context/);
    await expect(key.decapsulate(message)).rejects.toThrow(/AWS-LC cannot/);
    await expect(addon.importSecretKey(algorithm, new Uint8Array(31), undefined)).rejects.toThrow(/31 bytes/);
    await expect(addon.importSecretKey(algorithm, undefined, wrong)).rejects.toThrow(/bytes instead of/);
    expect(() => addon.importPublicKey(algorithm, wrong)).toThrow(/bytes instead of/);
    expect(await key.publicKey().verify(message, wrong, noContext)).toBe(false);
    key.erase();
    expect(() => key.sign(message, noContext)).toThrow(/has been erased/);
  });
});
