import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { type Algorithm, mlDsaNames } from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { mlDsa } from "../../src/crypto/noble.ts";
import type { PublicKey, SignatureOptions } from "../../src/crypto/provider.ts";
import { flipBit } from "../support/bytes.ts";
import { describeProviders, makeKeyPairs } from "../support/crypto-providers.ts";
import { refusal } from "./refusal.ts";

const message = new TextEncoder().encode("a message");

/** Bypasses the type checker, as JavaScript callers can. */
const untyped = (value: unknown) => value as never;

describeProviders("%s, given bad input,", async (provider, name) => {
  const other = await createCryptoProvider("openssl");
  afterAll(() => other.close());
  const lattice = ["ML-DSA-44", "ML-DSA-65", "ML-KEM-768"] as const;
  const keys = await makeKeyPairs(provider, [...lattice, "SLH-DSA-SHA2-128f", "ECDSA-P256"]);

  describe("verifies as false", () => {
    const forgeries: Record<string, (signature: Uint8Array) => Uint8Array> = {
      "an empty signature": () => new Uint8Array(),
      "a signature one byte short": (signature) => signature.subarray(1),
      "a signature with an extra byte": (signature) => Uint8Array.of(...signature, 0),
      "a signature with the length of a different parameter set": () => new Uint8Array(3309),
      "a signature of ones": (signature) => new Uint8Array(signature.length).fill(0xff),
      "a flipped bit": (signature) => flipBit(signature, 1000),
    };

    it.each(Object.entries(forgeries))("%s", async (_name, forge) => {
      const { publicKey, secretKey } = keys("ML-DSA-44");
      const signature = await provider.sign(secretKey, message);
      expect(await provider.verify(publicKey, message, forge(signature))).toBe(false);
    });

    it("a signature by a different key", async () => {
      const { secretKey } = await provider.generateKeyPair("ML-DSA-44");
      const signature = await provider.sign(secretKey, message);
      expect(await provider.verify(keys("ML-DSA-44").publicKey, message, signature)).toBe(false);
    });
  });

  describe("rejects with INVALID_ARGUMENT", () => {
    const signed = (options: unknown, algorithm: Algorithm = "ML-DSA-65") =>
      provider.sign(keys(algorithm).secretKey, message, untyped(options));
    const verified = (options: SignatureOptions, algorithm: Algorithm = "ML-DSA-65") =>
      provider.verify(keys(algorithm).publicKey, message, new Uint8Array(3309), options);

    const attempts: Record<string, () => unknown> = {
      "signing a string": () => provider.sign(keys("ML-DSA-65").secretKey, untyped("text")),
      "verifying a string": () => provider.verify(keys("ML-DSA-65").publicKey, untyped("text"), message),
      "a string as a signature": () => provider.verify(keys("ML-DSA-65").publicKey, message, untyped("text")),
      "signing with a context of 256 bytes": () => signed({ context: new Uint8Array(256) }),
      "verifying with a context of 256 bytes": () => verified({ context: new Uint8Array(256) }),
      "a string as the context": () => signed({ context: "text" }),
      "null as the options": () => signed(null),
      "a misspelled option": () => signed({ ctx: new Uint8Array(1) }),
      "signing with a context for ECDSA": () => signed({ context: new Uint8Array(1) }, "ECDSA-P256"),
      "verifying with a context for ECDSA": () => verified({ context: new Uint8Array() }, "ECDSA-P256"),
      "an ECDSA encoding for ML-DSA": () => signed({ ecdsaEncoding: "der" }),
      "an unknown ECDSA encoding": () => signed({ ecdsaEncoding: "p1363" }, "ECDSA-P256"),
      "signing with a KEM key": () => signed({}, "ML-KEM-768"),
      "verifying with a KEM key": () => verified({}, "ML-KEM-768"),
      "encapsulating to a signature key": () => provider.encapsulate(keys("ML-DSA-65").publicKey),
      "decapsulating with a signature key": () => provider.decapsulate(keys("ML-DSA-65").secretKey, message),
      "encapsulating to a secret key": () => provider.encapsulate(untyped(keys("ML-KEM-768").secretKey)),
      "a public key from a different provider": async () =>
        provider.encapsulate((await other.generateKeyPair("ML-KEM-768")).publicKey),
      "a secret key from a different provider": async () =>
        provider.sign((await other.generateKeyPair("ML-DSA-65")).secretKey, message),
      "an object that only looks like a key": () =>
        provider.sign(untyped({ algorithm: "ML-DSA-65" }), message),
      "a ciphertext one byte short": () =>
        provider.decapsulate(keys("ML-KEM-768").secretKey, new Uint8Array(1087)),
      "a string as the ciphertext": () => provider.decapsulate(keys("ML-KEM-768").secretKey, untyped("text")),
      "an unknown algorithm": () => provider.generateKeyPair(untyped("ML-DSA-66")),
      "a string as a raw public key": () => provider.importPublicKey("ML-DSA-65", untyped({ raw: "text" })),
      "null as the key material": () => provider.importPublicKey("ML-DSA-65", untyped(null)),
      "key material in two forms": () =>
        provider.importSecretKey("ML-DSA-65", untyped({ seed: message, raw: message })),
      "key material without a form": () => provider.importSecretKey("ML-DSA-65", untyped({})),
      "bytes instead of PEM": () => provider.importPublicKey("ML-DSA-65", untyped({ pem: message })),
    };

    it.each(Object.entries(attempts))("%s", async (_name, attempt) => {
      expect(await refusal(attempt)).toBe("INVALID_ARGUMENT");
    });
  });

  describe("rejects with INVALID_KEY", () => {
    const importPublic = (algorithm: Algorithm, raw: Uint8Array) =>
      provider.importPublicKey(algorithm, { raw });
    const publicKeyAttempts: Record<string, () => unknown> = {
      "a public key one byte short": () => importPublic("ML-DSA-65", new Uint8Array(1951)),
      "a public key with an extra byte": () => importPublic("ML-DSA-65", new Uint8Array(1953)),
      "an ML-KEM public key with a coefficient of q": () =>
        importPublic("ML-KEM-768", withFirstCoefficient(keys("ML-KEM-768").publicKey.exportRaw(), 3329)),
      "an ECDSA point that is not on the curve": () =>
        importPublic("ECDSA-P256", flipBit(keys("ECDSA-P256").publicKey.exportRaw(), 64)),
      "a compressed ECDSA point": () =>
        importPublic("ECDSA-P256", keys("ECDSA-P256").publicKey.exportRaw().subarray(32)),
      "an ECDSA point in hybrid form": () => {
        const point = keys("ECDSA-P256").publicKey.exportRaw();
        return importPublic("ECDSA-P256", point.with(0, 6 + ((point[64] ?? 0) & 1)));
      },
      "the ECDSA point at infinity": () => importPublic("ECDSA-P256", new Uint8Array(65)),
    };

    it.each(Object.entries(publicKeyAttempts))("%s", async (_name, attempt) => {
      expect(await refusal(attempt)).toBe("INVALID_KEY");
    });

    it.each([
      ["ML-DSA-65", 31],
      ["ML-DSA-65", 0],
      ["ML-KEM-768", 65],
    ] as const)("a seed of %s with %i bytes", async (algorithm, length) => {
      const attempt = () => provider.importSecretKey(algorithm, { seed: new Uint8Array(length) });
      expect(await refusal(attempt)).toBe("INVALID_KEY");
    });

    // ML-DSA-65: ρ (32 bytes) ‖ K (32) ‖ tr (64) ‖ s1 (640) ‖ s2 (768) ‖ t0 (2496).
    // ML-KEM-768: ŝ (1152) ‖ ek (1184) ‖ H(ek) (32) ‖ z (32). SLH-DSA-SHA2-128f: four parts of 16.
    const secretKeyChanges: Record<string, [Algorithm, (raw: Uint8Array) => Uint8Array]> = {
      "an expanded key one byte short": ["ML-DSA-65", (raw) => raw.subarray(1)],
      "a seed instead of an expanded key": ["ML-DSA-65", (raw) => raw.subarray(0, 32)],
      "an ML-DSA key with s1 out of range": ["ML-DSA-65", (raw) => raw.with(128, 0xff)],
      "an ML-DSA key with s2 out of range": ["ML-DSA-65", (raw) => raw.with(128 + 640, 0xff)],
      "an ML-KEM key with a coefficient of q in ŝ": ["ML-KEM-768", (raw) => withFirstCoefficient(raw, 3329)],
      "an ML-KEM key with another coefficient": [
        "ML-KEM-768",
        (raw) => withFirstCoefficient(raw, otherCoefficient(raw)),
      ],
      "an ML-KEM key with a changed ek": ["ML-KEM-768", (raw) => flipBit(raw, 1152 + 1183)],
      "an ML-KEM key with a changed H(ek)": ["ML-KEM-768", (raw) => flipBit(raw, 2400 - 64)],
      "an SLH-DSA key with a changed SK.seed": ["SLH-DSA-SHA2-128f", (raw) => flipBit(raw, 0)],
      "an SLH-DSA key with a changed PK.seed": ["SLH-DSA-SHA2-128f", (raw) => flipBit(raw, 32)],
      "an SLH-DSA key with a changed PK.root": ["SLH-DSA-SHA2-128f", (raw) => flipBit(raw, 63)],
      "the ECDSA scalar 0": ["ECDSA-P256", () => new Uint8Array(32)],
      "the group order as the ECDSA scalar": ["ECDSA-P256", () => groupOrder],
      "an ECDSA scalar above the group order": ["ECDSA-P256", () => new Uint8Array(32).fill(0xff)],
    };

    it.each(Object.entries(secretKeyChanges))("%s", async (_name, [algorithm, change]) => {
      const raw = change(keys(algorithm).secretKey.exportRaw());
      expect(await refusal(() => provider.importSecretKey(algorithm, { raw }))).toBe("INVALID_KEY");
    });
  });

  // The noble library, which signs mu for OpenSSL, would accept such keys, and their signatures would not
  // verify.
  it.each(mlDsaNames)("rejects an expanded %s key with any flipped bit outside K", async (algorithm) => {
    const raw = (await provider.generateKeyPair(algorithm)).secretKey.exportRaw();
    const places = Array.from({ length: 60 }, (_, i) => Math.floor((i * (raw.length - 32)) / 60));
    const refusals = places
      .map((place) => (place < 32 ? place : place + 32))
      .map((place) =>
        refusal(() => provider.importSecretKey(algorithm, { raw: flipBit(raw, place, 1 << (place % 8)) })),
      );
    expect(await Promise.all(refusals)).toEqual(places.map(() => "INVALID_KEY"));
  });

  it.each(["SLH-DSA-SHA2-128f", "ECDSA-P256"] as const)(
    "rejects a %s seed with UNSUPPORTED",
    async (algorithm) => {
      const attempt = () => provider.importSecretKey(algorithm, { seed: new Uint8Array(48) });
      expect(await refusal(attempt)).toBe("UNSUPPORTED");
    },
  );

  it("rejects using or exporting an erased key with CLOSED", async () => {
    const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-65");
    const signature = await provider.sign(secretKey, message);
    secretKey.erase();
    secretKey.erase();
    const uses = [
      () => provider.sign(secretKey, message),
      () => secretKey.exportRaw(),
      () => secretKey.exportSeed(),
      () => secretKey.toPem(),
    ];
    expect(await Promise.all(uses.map(refusal))).toEqual(uses.map(() => "CLOSED"));
    expect(await provider.verify(publicKey, message, signature)).toBe(true);
  });

  it("rejects every call with CLOSED after it is closed", async () => {
    const closed = await createCryptoProvider(name);
    const { publicKey, secretKey } = await closed.generateKeyPair("ML-DSA-65");
    await closed.close();
    expect(await refusal(() => closed.generateKeyPair("ML-DSA-65"))).toBe("CLOSED");
    expect(await refusal(() => closed.sign(secretKey, message))).toBe("CLOSED");
    expect(await refusal(() => closed.verify(publicKey, message, message))).toBe("CLOSED");
    expect(await refusal(() => closed.importPublicKey("ML-DSA-65", { raw: message }))).toBe("CLOSED");
  });
});

/** The order of secp256r1 (SEC 2, section 2.4.2). */
const groupOrder = Uint8Array.fromHex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");

/** Sets the first 12-bit coefficient of an ML-KEM key (FIPS 203, algorithm 5). */
function withFirstCoefficient(raw: Uint8Array, coefficient: number): Uint8Array {
  const high = ((raw[1] ?? 0) & 0xf0) | (coefficient >> 8);
  return raw.with(0, coefficient & 0xff).with(1, high);
}

/** A valid coefficient far from the first one, so that decryption fails. */
function otherCoefficient(raw: Uint8Array): number {
  const coefficient = (raw[0] ?? 0) | (((raw[1] ?? 0) & 0x0f) << 8);
  return (coefficient + 1665) % 3329;
}

const longMessage = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);
const context = Uint8Array.of(1, 2, 3);

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
      const mu = muOf(publicKey, [longMessage], { context });
      const signatures = await Promise.all(
        [secretKey, secretKey, expanded, expanded].map((key) => provider.signRepresentative(key, mu)),
      );
      expect(new Set(signatures.map((signature) => signature.toHex())).size).toBe(4);
      for (const signature of signatures) {
        const verdicts = [
          provider.verify(publicKey, longMessage, signature, { context }),
          mlDsa[algorithm].verify(signature, longMessage, publicKey.exportRaw(), { context }),
          provider.verify(publicKey, longMessage, signature),
          provider.verify(publicKey, flipBit(longMessage), signature, { context }),
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
    for (let start = 0; start < longMessage.length; start += chunk.length) {
      chunk.set(longMessage.subarray(start, start + chunk.length));
      mu.update(chunk);
      chunk.fill(0);
    }
    expect(mu.digest()).toEqual(muOf(publicKey, [longMessage], { context }));
  });

  it("is signed from shared memory, which stays unchanged", async () => {
    const { publicKey, secretKey } = keys("ML-DSA-44");
    const mu = muOf(publicKey, [longMessage]);
    const shared = new Uint8Array(new SharedArrayBuffer(64));
    shared.set(mu);
    const signature = await provider.signRepresentative(secretKey, shared);
    expect(await provider.verify(publicKey, longMessage, signature)).toBe(true);
    expect(Array.from(shared)).toEqual(Array.from(mu));
  });

  it("is signed with the values from the time of the call, however many calls wait for a thread", async () => {
    const { publicKey, secretKey } = keys("ML-DSA-65");
    const imports = Array.from({ length: 20 }, () =>
      provider.importSecretKey("ML-DSA-65", { raw: secretKey.exportRaw() }),
    );
    const signings = (await Promise.all(imports)).map((imported) => {
      const mu = muOf(publicKey, [longMessage]);
      const signing = provider.signRepresentative(imported, mu);
      mu.fill(0);
      imported.erase();
      return signing;
    });
    const answers = (await Promise.all(signings)).map((each) =>
      provider.verify(publicKey, longMessage, each),
    );
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
      mu.update(longMessage);
      expect(mu.digest()).toEqual(muOf(keys("ML-DSA-44").publicKey, [longMessage]));
    });

    it("after its digest", async () => {
      const mu = provider.startRepresentative(keys("ML-DSA-44").publicKey);
      mu.digest();
      expect(await refusal(() => mu.update(longMessage))).toBe("CLOSED");
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
