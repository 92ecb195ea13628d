/** Which part of a secret key is sealed, and that it opens as the same key. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { algorithms } from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider, SecretKey } from "../../src/crypto/provider.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { importSealedKey, lendSecret, openSealedKey } from "../../src/secrets/sealed-keys.ts";
import { flipBit } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";

describeProviders("a secret key with %s", (provider) => {
  it.each(["ML-DSA-65", "ML-KEM-768", "X-Wing"] as const)("is sealed as its seed: %s", async (algorithm) => {
    const { secretKey } = await provider.generateKeyPair(algorithm);
    const sealed = await copySecret(secretKey);
    expect(sealed).toEqual(secretKey.exportSeed());
    const opened = await importSealedKey(provider, algorithm, sealed, secretKey.publicKey.exportRaw());
    expect(opened.exportSeed()).toEqual(secretKey.exportSeed());
  });

  it.each(["SLH-DSA-SHA2-128f", "ECDSA-P256"] as const)(
    "is sealed whole if its algorithm has no seed: %s",
    async (algorithm) => {
      const { secretKey } = await provider.generateKeyPair(algorithm);
      const sealed = await copySecret(secretKey);
      expect(sealed).toEqual(secretKey.exportRaw());
      const opened = await importSealedKey(provider, algorithm, sealed, secretKey.publicKey.exportRaw());
      expect(opened.exportRaw()).toEqual(secretKey.exportRaw());
    },
  );

  it.each(["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "ML-KEM-512", "ML-KEM-768", "ML-KEM-1024"] as const)(
    "is sealed in expanded form if it was imported without its seed: %s",
    async (algorithm) => {
      const made = await provider.generateKeyPair(algorithm);
      const raw = made.secretKey.exportRaw();
      const imported = await provider.importSecretKey(algorithm, { raw });
      const sealed = await copySecret(imported);
      expect(sealed).toEqual(raw);
      expect(sealed).toHaveLength(algorithms[algorithm].secretKeyBytes);
      const key = {
        record: "key k1",
        identity: "kms_keys/k1",
        algorithm,
        publicKey: made.publicKey.exportRaw(),
      };
      const opened = await openSealedKey({ readSecret: async () => sealed }, provider, key);
      expect(opened.exportSeed()).toBeUndefined();
      expect(opened.exportRaw()).toEqual(raw);
      expect(opened.publicKey.exportRaw()).toEqual(made.publicKey.exportRaw());
    },
  );

  it("signs after being sealed in expanded form and opened", async () => {
    const made = await provider.generateKeyPair("ML-DSA-65");
    const imported = await provider.importSecretKey("ML-DSA-65", { raw: made.secretKey.exportRaw() });
    const opened = await importSealedKey(provider, "ML-DSA-65", await copySecret(imported));
    const message = new Uint8Array(8);
    expect(await provider.verify(made.publicKey, message, await provider.sign(opened, message))).toBe(true);
  });

  it("is wiped after sealing and after opening", async () => {
    const made = await provider.generateKeyPair("ML-KEM-512");
    const imported = await provider.importSecretKey("ML-KEM-512", { raw: made.secretKey.exportRaw() });
    const lent = await lendSecret(imported, async (secret) => secret);
    expect(lent).toEqual(new Uint8Array(lent.length));
    const sealed = imported.exportRaw();
    await importSealedKey(provider, "ML-KEM-512", sealed);
    expect(sealed).toEqual(new Uint8Array(sealed.length));
  });
});

describe("a sealed key whose record is damaged", () => {
  let provider: CryptoProvider;
  let secretKey: SecretKey;
  beforeAll(async () => {
    provider = await createCryptoProvider("openssl");
    ({ secretKey } = await provider.generateKeyPair("ML-DSA-65"));
  });
  afterAll(() => provider.close());

  const changes: Record<string, (raw: Uint8Array) => Uint8Array | undefined> = {
    missing: () => undefined,
    empty: () => new Uint8Array(),
    "of invalid length": (raw) => raw.subarray(1),
    "a different key's seed": (raw) => flipBit(raw.subarray(0, 32)),
    "an inconsistent expanded form": (raw) => flipBit(raw, 64),
  };

  it.each(Object.entries(changes))("is rejected: %s", async (_name, change) => {
    const raw = secretKey.exportRaw();
    const key = { record: "key k1", identity: "kms_keys/k1", algorithm: "ML-DSA-65" } as const;
    const publicKey = secretKey.publicKey.exportRaw();
    const opening = openSealedKey({ readSecret: async () => change(raw) }, provider, { ...key, publicKey });
    await expect(opening).rejects.toThrow(RecordDamagedError);
  });
});

/** Copies what `lendSecret` passes, which is wiped when it returns. */
function copySecret(secretKey: SecretKey): Promise<Uint8Array> {
  return lendSecret(secretKey, async (secret) => Uint8Array.from(secret));
}
