/** The providers and the noble library verify and decapsulate each other's output. */
import { createPrivateKey, createPublicKey } from "node:crypto";
import { p256 } from "@noble/curves/nist.js";
import { ml_kem768_x25519 } from "@noble/post-quantum/hybrid.js";
import type { KEM, Signer } from "@noble/post-quantum/utils.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  algorithms,
  type KemAlgorithm,
  kemNames,
  mlDsaNames,
  type PostQuantumSignatureAlgorithm,
  slhDsaNames,
} from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { mlDsa, mlKem } from "../../src/crypto/noble.ts";
import type { CryptoProvider, ProviderName } from "../../src/crypto/provider.ts";
import { flipBit } from "../support/bytes.ts";
import { isNativeSkipped, nativeNeed } from "../support/crypto-providers.ts";
import { slhDsa } from "../support/noble-slh-dsa.ts";

const message = new TextEncoder().encode("signed here, verified there");
const context = Uint8Array.of(7);

const nobleSigners: Readonly<Record<PostQuantumSignatureAlgorithm, Signer>> = { ...mlDsa, ...slhDsa };
const nobleKems: Readonly<Record<KemAlgorithm, KEM>> = { ...mlKem, "X-Wing": ml_kem768_x25519 };

const providers = new Map<ProviderName, CryptoProvider>();
const names: readonly ProviderName[] = ["openssl", ...(isNativeSkipped ? [] : (["native"] as const))];
beforeAll(async () => {
  for (const name of names) providers.set(name, await createCryptoProvider(name));
});
afterAll(() => Promise.all(Array.from(providers.values(), (provider) => provider.close())));

function use(name: ProviderName): CryptoProvider {
  const provider = providers.get(name);
  if (provider === undefined) throw new Error(`no provider ${name}`);
  return provider;
}

/** Every ordered pair of providers. The native provider itself implements only ML-DSA and ML-KEM. */
const pairs = names.flatMap((from) => names.filter((to) => to !== from).map((to) => ({ from, to })));
const latticePairs = <Name extends string>(algorithms: readonly Name[]) =>
  pairs.flatMap((pair) => algorithms.map((algorithm) => ({ ...pair, algorithm })));
/** Each provider with each algorithm. */
const rows = <Name extends string>(algorithms: readonly Name[]) =>
  names.flatMap((name) => algorithms.map((algorithm) => ({ name, algorithm })));

it.skipIf(isNativeSkipped)(`the native provider takes part${nativeNeed}`, () => {
  expect(pairs).toHaveLength(2);
});

describe("a signature", () => {
  /**
   * OpenSSL signs for both providers, and the official vectors prove each set. Noble needs seconds to sign with the
   * small ones.
   */
  const byOpenSsl = slhDsaNames
    .filter((algorithm) => algorithm.endsWith("128f") || process.env.QSP_TEST_LONG === "1")
    .map((algorithm) => ({ name: "openssl", algorithm }) as const);
  const signedByNoble = [
    ...rows(mlDsaNames),
    ...byOpenSsl.filter(({ algorithm }) => algorithm.endsWith("f")),
  ];

  it.each(latticePairs(mlDsaNames))(
    "by $from verifies with $to ($algorithm)",
    async ({ from, to, algorithm }) => {
      const { publicKey, secretKey } = await use(from).generateKeyPair(algorithm);
      const signature = await use(from).sign(secretKey, message, { context });
      const imported = use(to).importPublicKey(algorithm, { pem: publicKey.toPem() });
      expect(await use(to).verify(imported, message, signature, { context })).toBe(true);
      expect(await use(to).verify(imported, message, flipMiddle(signature), { context })).toBe(false);
    },
  );

  it.each([...rows(mlDsaNames), ...byOpenSsl])(
    "by $name verifies with noble ($algorithm)",
    { timeout: 120_000 },
    async ({ name, algorithm }) => {
      const { publicKey, secretKey } = await use(name).generateKeyPair(algorithm);
      const signature = await use(name).sign(secretKey, message, { context });
      const verify = (bytes: Uint8Array) =>
        nobleSigners[algorithm].verify(bytes, message, publicKey.exportRaw(), { context });
      expect([verify(signature), verify(flipMiddle(signature))]).toEqual([true, false]);
    },
  );

  it.each(signedByNoble)(
    "by noble verifies with $name ($algorithm)",
    { timeout: 120_000 },
    async ({ name, algorithm }) => {
      const { publicKey, secretKey } = nobleSigners[algorithm].keygen();
      const signature = nobleSigners[algorithm].sign(message, secretKey, { context });
      const imported = use(name).importPublicKey(algorithm, { raw: publicKey });
      expect(await use(name).verify(imported, message, signature, { context })).toBe(true);
      expect(await use(name).verify(imported, message, flipMiddle(signature), { context })).toBe(false);
    },
  );

  it("by OpenSSL verifies with noble, and vice versa (ECDSA-P256)", async () => {
    const { publicKey, secretKey } = await use("openssl").generateKeyPair("ECDSA-P256");
    const raw = publicKey.exportRaw();
    const options = { format: "der", lowS: false } as const;
    const theirs = await use("openssl").sign(secretKey, message);
    const verify = (bytes: Uint8Array) => p256.verify(bytes, message, raw, options);
    expect([verify(theirs), verify(flipMiddle(theirs))]).toEqual([true, false]);
    const signature = p256.sign(message, secretKey.exportRaw(), options);
    expect(await use("openssl").verify(publicKey, message, signature)).toBe(true);
    expect(await use("openssl").verify(publicKey, message, flipMiddle(signature))).toBe(false);
  });

  it.each(latticePairs(mlDsaNames))(
    "by $from over mu verifies with $to over the message ($algorithm)",
    async ({ from, to, algorithm }) => {
      const { publicKey, secretKey } = await use(from).generateKeyPair(algorithm);
      const mu = use(from).startRepresentative(publicKey, { context });
      mu.update(message);
      const signature = await use(from).signRepresentative(secretKey, mu.digest());
      const imported = use(to).importPublicKey(algorithm, { raw: publicKey.exportRaw() });
      expect(await use(to).verify(imported, message, signature, { context })).toBe(true);
      expect(await use(to).verify(imported, message, signature)).toBe(false);
    },
  );

  function flipMiddle(signature: Uint8Array): Uint8Array {
    return flipBit(signature, signature.length >> 1);
  }
});

describe("a key pair", () => {
  it.each(latticePairs(kemNames))(
    "from $from decapsulates what $to encapsulated ($algorithm)",
    async ({ from, to, algorithm }) => {
      const { publicKey, secretKey } = await use(from).generateKeyPair(algorithm);
      const imported = use(to).importPublicKey(algorithm, { raw: publicKey.exportRaw() });
      const { ciphertext, sharedSecret } = await use(to).encapsulate(imported);
      expect(await use(from).decapsulate(secretKey, ciphertext)).toEqual(sharedSecret);
    },
  );

  it.each(rows(kemNames))(
    "from $name gives noble the same secrets, even for a wrong ciphertext ($algorithm)",
    async ({ name, algorithm }) => {
      const { publicKey, secretKey } = await use(name).generateKeyPair(algorithm);
      const [raw, rawSecret] = [publicKey.exportRaw(), secretKey.exportRaw()];
      const ours = await use(name).encapsulate(publicKey);
      expect(nobleKems[algorithm].decapsulate(ours.ciphertext, rawSecret)).toEqual(ours.sharedSecret);
      const theirs = nobleKems[algorithm].encapsulate(raw);
      expect(await use(name).decapsulate(secretKey, theirs.cipherText)).toEqual(theirs.sharedSecret);
      const wrong = flipBit(ours.ciphertext, 5);
      expect(await use(name).decapsulate(secretKey, wrong)).toEqual(
        nobleKems[algorithm].decapsulate(wrong, rawSecret),
      );
    },
  );

  it.each(rows([...mlDsaNames, ...kemNames]))(
    "from $name has the expanded form and the public key that noble derives ($algorithm)",
    async ({ name, algorithm }) => {
      const { publicKey, secretKey } = await use(name).generateKeyPair(algorithm);
      const derived = { ...mlDsa, ...nobleKems }[algorithm].keygen(secretKey.exportSeed());
      expect(secretKey.exportRaw()).toEqual(derived.secretKey);
      expect(publicKey.exportRaw()).toEqual(derived.publicKey);
    },
  );

  it.each(latticePairs(kemNames))(
    "from $from rejects a wrong ciphertext with the same secret as $to ($algorithm)",
    async ({ from, to, algorithm }) => {
      const { publicKey, secretKey } = await use(from).generateKeyPair(algorithm);
      const { ciphertext } = await use(from).encapsulate(publicKey);
      const imported = await use(to).importSecretKey(algorithm, { raw: secretKey.exportRaw() });
      const wrong = flipBit(ciphertext, 5);
      expect(await use(to).decapsulate(imported, wrong)).toEqual(
        await use(from).decapsulate(secretKey, wrong),
      );
    },
  );

  it.each(latticePairs([...mlDsaNames, ...kemNames]))(
    "from $from has the expanded form, seed and PEM that $to derives ($algorithm)",
    async ({ from, to, algorithm }) => {
      const { secretKey } = await use(from).generateKeyPair(algorithm);
      const imported = await use(to).importSecretKey(algorithm, {
        seed: secretKey.exportSeed() ?? new Uint8Array(),
      });
      expect(imported.exportRaw()).toEqual(secretKey.exportRaw());
      expect(imported.toPem()).toBe(secretKey.toPem());
      expect(imported.publicKey.toPem()).toBe(secretKey.publicKey.toPem());
    },
  );
});

describe("our PEM", () => {
  // node:crypto does not read hybrid keys; x-wing.test.ts and composite.test.ts compare their PEM with the drafts'.
  const readByNode = Object.values(algorithms).filter(
    ({ family }) => family !== "X-Wing" && family !== "Composite",
  );

  it.each(readByNode)("for $name is what node:crypto writes and reads", async ({ name }) => {
    const { publicKey, secretKey } = await use("openssl").generateKeyPair(name);
    const nodeSecretKey = createPrivateKey(secretKey.toPem());
    expect(nodeSecretKey.export({ format: "pem", type: "pkcs8" })).toBe(secretKey.toPem());
    expect(createPublicKey(nodeSecretKey).export({ format: "pem", type: "spki" })).toBe(publicKey.toPem());
  });
});
