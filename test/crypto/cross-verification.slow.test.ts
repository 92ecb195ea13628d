import { createPrivateKey, createPublicKey } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  algorithms,
  mlDsaNames,
  mlKemNames,
  type SignatureAlgorithm,
  slhDsaNames,
} from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider, KeyPair, SignatureOptions } from "../../src/crypto/provider.ts";
import { flipBit } from "../support/bytes.ts";

const message = new TextEncoder().encode("signed here, verified there");

let openssl: CryptoProvider;
let noble: CryptoProvider;
beforeAll(async () => {
  [openssl, noble] = await Promise.all([createCryptoProvider("openssl"), createCryptoProvider("noble")]);
});
afterAll(() => Promise.all([openssl.close(), noble.close()]));

describe("a signature of one provider", () => {
  const signedByOpenssl: SignatureAlgorithm[] = [...mlDsaNames, ...slhDsaNames, "ECDSA-P256"];
  const signedByNoble = signedByOpenssl.filter((name) => !/^SLH.*s$/.test(name));

  it.each(signedByOpenssl)("openssl's %s verifies with noble", { timeout: 30_000 }, async (algorithm) => {
    expect(await crossVerify(algorithm, openssl, noble)).toEqual({ valid: true, flipped: false });
  });

  it.each(signedByNoble)("noble's %s verifies with openssl", { timeout: 30_000 }, async (algorithm) => {
    expect(await crossVerify(algorithm, noble, openssl)).toEqual({ valid: true, flipped: false });
  });

  async function crossVerify(
    algorithm: SignatureAlgorithm,
    signer: CryptoProvider,
    verifier: CryptoProvider,
  ) {
    const { publicKey, secretKey } = await signer.generateKeyPair(algorithm);
    const options: SignatureOptions = algorithm === "ECDSA-P256" ? {} : { context: Uint8Array.of(7) };
    const signature = await signer.sign(secretKey, message, options);
    const imported = verifier.importPublicKey(algorithm, { pem: publicKey.toPem() });
    return {
      valid: await verifier.verify(imported, message, signature, options),
      flipped: await verifier.verify(imported, message, flipBit(signature, signature.length >> 1), options),
    };
  }
});

describe("a key pair of one provider", () => {
  it.each(mlKemNames)("%s decapsulates there what was encapsulated here, both ways", async (algorithm) => {
    const fromOpenssl = await openssl.generateKeyPair(algorithm);
    const fromNoble = await noble.generateKeyPair(algorithm);
    expect(await exchange(fromOpenssl, noble, openssl)).toBe(true);
    expect(await exchange(fromNoble, openssl, noble)).toBe(true);
  });

  it.each(mlKemNames)("%s rejects a wrong ciphertext with the same secret in both", async (algorithm) => {
    const { publicKey, secretKey } = await openssl.generateKeyPair(algorithm);
    const { ciphertext } = await openssl.encapsulate(publicKey);
    const imported = await noble.importSecretKey(algorithm, { raw: secretKey.exportRaw() });
    const wrong = flipBit(ciphertext, 5);
    expect(await noble.decapsulate(imported, wrong)).toEqual(await openssl.decapsulate(secretKey, wrong));
  });

  it.each([...mlDsaNames, ...mlKemNames])(
    "%s has one expanded form, one seed and one PEM in both",
    async (algorithm) => {
      const { secretKey } = await openssl.generateKeyPair(algorithm);
      const imported = await noble.importSecretKey(algorithm, {
        seed: secretKey.exportSeed() ?? new Uint8Array(),
      });
      expect(imported.exportRaw()).toEqual(secretKey.exportRaw());
      expect(imported.toPem()).toBe(secretKey.toPem());
      expect(imported.publicKey.toPem()).toBe(secretKey.publicKey.toPem());
    },
  );

  async function exchange(
    { publicKey, secretKey }: KeyPair,
    sender: CryptoProvider,
    receiver: CryptoProvider,
  ) {
    const imported = sender.importPublicKey(publicKey.algorithm, { raw: publicKey.exportRaw() });
    const { ciphertext, sharedSecret } = await sender.encapsulate(imported);
    return Buffer.compare(await receiver.decapsulate(secretKey, ciphertext), sharedSecret) === 0;
  }
});

describe("our PEM", () => {
  it.each(Object.values(algorithms))("of $name is what node:crypto writes and reads", async ({ name }) => {
    const { publicKey, secretKey } = await openssl.generateKeyPair(name);
    const nodeSecretKey = createPrivateKey(secretKey.toPem());
    expect(nodeSecretKey.export({ format: "pem", type: "pkcs8" })).toBe(secretKey.toPem());
    expect(createPublicKey(nodeSecretKey).export({ format: "pem", type: "spki" })).toBe(publicKey.toPem());
  });
});
