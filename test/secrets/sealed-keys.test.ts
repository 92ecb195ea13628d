/** Which part of a secret key is sealed, and that it opens as the same key. */
import { describe, expect, it, onTestFinished } from "vitest";
import { algorithms } from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { SecretKey } from "../../src/crypto/provider.ts";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { importSealedKey, lendSecret, openSealedKey } from "../../src/secrets/sealed-keys.ts";
import { flipBit } from "../support/bytes.ts";
import { describeProviders } from "../support/crypto-providers.ts";

describeProviders("a secret key with %s", (provider) => {
  it.each(["ML-DSA-65", "ML-KEM-768", "X-Wing", "SLH-DSA-SHA2-128f", "ECDSA-P256"] as const)(
    "is sealed as its seed, or whole if its algorithm has none: %s",
    async (algorithm) => {
      const { secretKey } = await provider.generateKeyPair(algorithm);
      const whole = (key: SecretKey) => (/^(ML|X-)/.test(algorithm) ? key.exportSeed() : key.exportRaw());
      const sealed = await copySecret(secretKey);
      expect(sealed).toEqual(whole(secretKey));
      const opened = await importSealedKey(provider, algorithm, sealed, secretKey.publicKey.exportRaw());
      expect(whole(opened)).toEqual(whole(secretKey));
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
      const publicKey = made.publicKey.exportRaw();
      const key = { record: "key k1", identity: "kms_keys/k1", algorithm, publicKey };
      const opened = await openSealedKey({ readSecret: async () => sealed }, provider, key);
      expect(opened.exportSeed()).toBeUndefined();
      expect(opened.exportRaw()).toEqual(raw);
      expect(opened.publicKey.exportRaw()).toEqual(publicKey);
    },
  );

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
  const changes: Record<string, (raw: Uint8Array) => Uint8Array | undefined> = {
    missing: () => undefined,
    empty: () => new Uint8Array(),
    "of invalid length": (raw) => raw.subarray(1),
    "a different key's seed": (raw) => flipBit(raw.subarray(0, 32)),
    "an inconsistent expanded form": (raw) => flipBit(raw, 64),
  };

  it.each(Object.entries(changes))("is rejected: %s", async (_name, change) => {
    const provider = await createCryptoProvider("openssl");
    onTestFinished(() => provider.close());
    const { secretKey } = await provider.generateKeyPair("ML-DSA-65");
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
