import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { mlDsaNames } from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { mlDsa } from "../../src/crypto/noble.ts";
import type { PublicKey, SignatureOptions } from "../../src/crypto/provider.ts";
import { flipBit } from "../support/bytes.ts";
import { describeProviders, makeKeyPairs } from "../support/crypto-providers.ts";
import { refusal } from "./refusal.ts";

const message = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);
const context = Uint8Array.of(1, 2, 3);

/** Bypasses the type checker, as JavaScript callers can. */
const untyped = (value: unknown) => value as never;

describeProviders("an external mu with %s", async (provider, name) => {
  const other = await createCryptoProvider("openssl");
  afterAll(() => other.close());
  const others = ["SLH-DSA-SHA2-128f", "ML-KEM-512", "ECDSA-P256"] as const;
  const keys = await makeKeyPairs(provider, [...mlDsaNames, ...others]);

  function muOf(publicKey: PublicKey, chunks: readonly Uint8Array[], options?: SignatureOptions): Uint8Array {
    const mu = provider.startRepresentative(publicKey, options);
    for (const chunk of chunks) mu.update(chunk);
    return mu.digest();
  }

  it.each(mlDsaNames)(
    "for %s is signed like the message, each time differently, even without a seed",
    async (algorithm) => {
      const { publicKey, secretKey } = keys(algorithm);
      const expanded = await provider.importSecretKey(algorithm, { raw: secretKey.exportRaw() });
      const mu = muOf(publicKey, [message], { context });
      const signatures = await Promise.all(
        [secretKey, secretKey, expanded, expanded].map((key) => provider.signRepresentative(key, mu)),
      );
      expect(new Set(signatures.map((signature) => signature.toHex())).size).toBe(4);
      for (const signature of signatures) {
        const verdicts = [
          provider.verify(publicKey, message, signature, { context }),
          mlDsa[algorithm].verify(signature, message, publicKey.exportRaw(), { context }),
          provider.verify(publicKey, message, signature),
          provider.verify(publicKey, flipBit(message), signature, { context }),
        ];
        expect(await Promise.all(verdicts)).toEqual([true, true, false, false]);
      }
    },
  );

  it("is the same in one chunk and in many, even if the caller overwrites chunks or the context", () => {
    const { publicKey } = keys("ML-DSA-44");
    const changingContext = Uint8Array.from(context);
    const chunk = new Uint8Array(100);
    const mu = provider.startRepresentative(publicKey, { context: changingContext });
    changingContext.fill(0);
    for (let start = 0; start < message.length; start += chunk.length) {
      chunk.set(message.subarray(start, start + chunk.length));
      mu.update(chunk);
      chunk.fill(0);
    }
    expect(mu.digest()).toEqual(muOf(publicKey, [message], { context }));
  });

  it("is signed from shared memory, which stays unchanged", async () => {
    const { publicKey, secretKey } = keys("ML-DSA-44");
    const mu = muOf(publicKey, [message]);
    const shared = new Uint8Array(new SharedArrayBuffer(64));
    shared.set(mu);
    const signature = await provider.signRepresentative(secretKey, shared);
    expect(await provider.verify(publicKey, message, signature)).toBe(true);
    expect(Array.from(shared)).toEqual(Array.from(mu));
  });

  it("is signed with the values from the time of the call, however many calls wait for a thread", async () => {
    const { publicKey, secretKey } = keys("ML-DSA-65");
    const imports = Array.from({ length: 20 }, () =>
      provider.importSecretKey("ML-DSA-65", { raw: secretKey.exportRaw() }),
    );
    const signings = (await Promise.all(imports)).map((imported) => {
      const mu = muOf(publicKey, [message]);
      const signing = provider.signRepresentative(imported, mu);
      mu.fill(0);
      imported.erase();
      return signing;
    });
    const answers = (await Promise.all(signings)).map((each) => provider.verify(publicKey, message, each));
    expect(new Set(await Promise.all(answers))).toEqual(new Set([true]));
  });

  describe("is rejected", () => {
    const notMu = [0, 63, 65].map((length) => new Uint8Array(length));
    it.each([...notMu, undefined, null, "a".repeat(64), Array(64).fill(0)])("if it is %j", async (mu) => {
      const signing = () => provider.signRepresentative(keys("ML-DSA-44").secretKey, untyped(mu));
      expect(await refusal(signing)).toBe("INVALID_ARGUMENT");
    });

    it.each(others)("for %s keys", async (algorithm) => {
      const { publicKey, secretKey } = keys(algorithm);
      expect(await refusal(() => provider.startRepresentative(publicKey))).toBe("INVALID_ARGUMENT");
      expect(await refusal(() => provider.signRepresentative(secretKey, new Uint8Array(64)))).toBe(
        "INVALID_ARGUMENT",
      );
    });

    it("for keys of the other provider, and for objects that are not keys", async () => {
      const foreign = await other.generateKeyPair("ML-DSA-44");
      for (const { publicKey, secretKey } of [foreign, { publicKey: untyped({}), secretKey: untyped({}) }]) {
        expect(await refusal(() => provider.startRepresentative(publicKey))).toBe("INVALID_ARGUMENT");
        const signing = () => provider.signRepresentative(secretKey, new Uint8Array(64));
        expect(await refusal(signing)).toBe("INVALID_ARGUMENT");
      }
    });

    it("with options that are invalid for signing too", async () => {
      const start = () =>
        provider.startRepresentative(keys("ML-DSA-44").publicKey, untyped({ contxt: context }));
      expect(await refusal(start)).toBe("INVALID_ARGUMENT");
    });

    it.each(["text", undefined, null, 5, [1, 2], new ArrayBuffer(8)])("with the chunk %j", async (chunk) => {
      const mu = provider.startRepresentative(keys("ML-DSA-44").publicKey);
      expect(await refusal(() => mu.update(untyped(chunk)))).toBe("INVALID_ARGUMENT");
      mu.update(message);
      expect(mu.digest()).toEqual(muOf(keys("ML-DSA-44").publicKey, [message]));
    });

    it("after its digest", async () => {
      const mu = provider.startRepresentative(keys("ML-DSA-44").publicKey);
      mu.digest();
      expect(await refusal(() => mu.update(message))).toBe("CLOSED");
      expect(await refusal(() => mu.digest())).toBe("CLOSED");
    });

    it("by a closed provider, which rejects unsigned mus queued for noble but finishes native jobs", async () => {
      const closing = await createCryptoProvider(name);
      const { publicKey, secretKey } = await closing.generateKeyPair("ML-DSA-44");
      const mu = new Uint8Array(64);
      await closing.signRepresentative(secretKey, mu);
      const unfinished = Array.from({ length: 20 }, () =>
        closing.signRepresentative(secretKey, mu).then(
          (signature) => signature.length,
          (error) => error.code,
        ),
      );
      await closing.close();
      // node:crypto cannot sign mu, so noble signs for OpenSSL.
      const outcome = name === "native" ? 2420 : "CLOSED";
      expect(new Set(await Promise.all(unfinished))).toEqual(new Set([outcome]));
      expect(await refusal(() => closing.startRepresentative(publicKey))).toBe("CLOSED");
      expect(await refusal(() => closing.signRepresentative(secretKey, mu))).toBe("CLOSED");
    });
  });
});

it("the mu of 16 MiB in 64 KiB chunks takes no more memory", async () => {
  const provider = await createCryptoProvider("openssl");
  onTestFinished(() => provider.close());
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  const usedBytes = () => {
    // V8 frees array buffers concurrently; a second collection waits for the first one to finish.
    collectGarbage();
    collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const large = new Uint8Array(16 * 1024 * 1024).fill(5);
  const mu = provider.startRepresentative((await provider.generateKeyPair("ML-DSA-65")).publicKey);
  const before = usedBytes();
  for (let start = 0; start < large.length; start += 65_536) mu.update(large.slice(start, start + 65_536));
  expect(usedBytes() - before).toBeLessThan(4 * 1024 * 1024);
});
