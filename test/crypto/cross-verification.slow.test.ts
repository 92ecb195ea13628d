import { createPrivateKey, createPublicKey } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  algorithms,
  kemNames,
  mlDsaNames,
  type SignatureAlgorithm,
  slhDsaNames,
} from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider, KeyPair, ProviderName, SignatureOptions } from "../../src/crypto/provider.ts";
import { flipBit } from "../support/bytes.ts";
import { isNativeSkipped, nativeNeed } from "../support/crypto-providers.ts";

const message = new TextEncoder().encode("signed here, verified there");
const context = Uint8Array.of(7);

const providers = new Map<ProviderName, CryptoProvider>();
const names: readonly ProviderName[] = [
  "openssl",
  "noble",
  ...(isNativeSkipped ? [] : (["native"] as const)),
];
beforeAll(async () => {
  for (const name of names) providers.set(name, await createCryptoProvider(name));
});
afterAll(() => Promise.all(Array.from(providers.values(), (provider) => provider.close())));

function use(name: ProviderName): CryptoProvider {
  const provider = providers.get(name);
  if (provider === undefined) throw new Error(`no provider ${name}`);
  return provider;
}

/** Every ordered pair of two providers. The native one does only ML-DSA and ML-KEM itself. */
const pairs = names.flatMap((from) => names.filter((to) => to !== from).map((to) => ({ from, to })));
const latticePairs = <Name extends string>(algorithms: readonly Name[]) =>
  pairs.flatMap((pair) => algorithms.map((algorithm) => ({ ...pair, algorithm })));

it.skipIf(isNativeSkipped)(`the native provider takes part${nativeNeed}`, () => {
  expect(pairs).toHaveLength(6);
});

describe("a signature of one provider", () => {
  const others = [...slhDsaNames, "ECDSA-P256"] as const;
  const signedByNoble = others.filter((name) => !/^SLH.*s$/.test(name));

  it.each(latticePairs(mlDsaNames))(
    "$from's $algorithm verifies with $to",
    async ({ from, to, algorithm }) => {
      expect(await crossVerify(algorithm, use(from), use(to))).toEqual({ valid: true, flipped: false });
    },
  );

  it.each(others)("openssl's %s verifies with noble", { timeout: 120_000 }, async (algorithm) => {
    expect(await crossVerify(algorithm, use("openssl"), use("noble"))).toEqual({
      valid: true,
      flipped: false,
    });
  });

  it.each(signedByNoble)("noble's %s verifies with openssl", { timeout: 120_000 }, async (algorithm) => {
    expect(await crossVerify(algorithm, use("noble"), use("openssl"))).toEqual({
      valid: true,
      flipped: false,
    });
  });

  it.each(latticePairs(mlDsaNames))(
    "$from's $algorithm over mu verifies with $to over the message",
    async ({ from, to, algorithm }) => {
      const { publicKey, secretKey } = await use(from).generateKeyPair(algorithm);
      const mu = use(from).startMu(publicKey, { context });
      mu.update(message);
      const signature = await use(from).signMu(secretKey, mu.digest());
      const imported = use(to).importPublicKey(algorithm, { raw: publicKey.exportRaw() });
      expect(await use(to).verify(imported, message, signature, { context })).toBe(true);
      expect(await use(to).verify(imported, message, signature)).toBe(false);
    },
  );

  async function crossVerify(
    algorithm: SignatureAlgorithm,
    signer: CryptoProvider,
    verifier: CryptoProvider,
  ) {
    const { publicKey, secretKey } = await signer.generateKeyPair(algorithm);
    const options: SignatureOptions = algorithm === "ECDSA-P256" ? {} : { context };
    const signature = await signer.sign(secretKey, message, options);
    const imported = verifier.importPublicKey(algorithm, { pem: publicKey.toPem() });
    return {
      valid: await verifier.verify(imported, message, signature, options),
      flipped: await verifier.verify(imported, message, flipBit(signature, signature.length >> 1), options),
    };
  }
});

describe("a key pair of one provider", () => {
  it.each(latticePairs(kemNames))(
    "$from's $algorithm decapsulates what $to encapsulated",
    async ({ from, to, algorithm }) => {
      expect(await exchange(await use(from).generateKeyPair(algorithm), use(to), use(from))).toBe(true);
    },
  );

  it.each(latticePairs(kemNames))(
    "$from's $algorithm rejects a wrong ciphertext with the same secret as $to",
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
    "$from's $algorithm has the expanded form, seed and PEM that $to derives",
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
  // node:crypto does not read X-Wing keys; x-wing.test.ts compares their PEM with the draft's.
  const readByNode = Object.values(algorithms).filter(({ name }) => name !== "X-Wing");

  it.each(readByNode)("of $name is what node:crypto writes and reads", async ({ name }) => {
    const { publicKey, secretKey } = await use("openssl").generateKeyPair(name);
    const nodeSecretKey = createPrivateKey(secretKey.toPem());
    expect(nodeSecretKey.export({ format: "pem", type: "pkcs8" })).toBe(secretKey.toPem());
    expect(createPublicKey(nodeSecretKey).export({ format: "pem", type: "spki" })).toBe(publicKey.toPem());
  });
});
