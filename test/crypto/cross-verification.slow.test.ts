/** The providers and the noble library use each other's keys, signatures and ciphertexts. */
import { p256 } from "@noble/curves/nist.js";
import { ml_kem768_x25519 } from "@noble/post-quantum/hybrid.js";
import * as slhDsaSets from "@noble/post-quantum/slh-dsa.js";
import type { KEM, Signer } from "@noble/post-quantum/utils.js";
import { afterAll, describe, expect, it } from "vitest";
import {
  type Algorithm,
  isKemAlgorithm,
  type KemAlgorithm,
  kemNames,
  mlDsaNames,
  type SignatureAlgorithm,
  slhDsaNames,
} from "../../src/crypto/algorithms.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { mlDsa, mlKem } from "../../src/crypto/noble.ts";
import type { Encapsulation, ProviderName } from "../../src/crypto/provider.ts";
import { flipBit } from "../support/bytes.ts";
import { isNativeSkipped } from "../support/crypto-providers.ts";

const message = new TextEncoder().encode("signed here, verified there");
const context = Uint8Array.of(7);
const optionsFor = (algorithm: Algorithm) => (algorithm === "ECDSA-P256" ? {} : { context });

/** A key pair in raw form. */
interface RawKeys {
  readonly publicKey: Uint8Array;
  readonly secretKey: Uint8Array;
}

/** An implementation, which takes and returns raw bytes. Signatures have a context, except for ECDSA. */
interface Party {
  generate(algorithm: Algorithm): Promise<RawKeys>;
  sign(algorithm: SignatureAlgorithm, secretKey: Uint8Array): Promise<Uint8Array>;
  verify(algorithm: SignatureAlgorithm, publicKey: Uint8Array, signature: Uint8Array): Promise<boolean>;
  encapsulate(algorithm: KemAlgorithm, publicKey: Uint8Array): Promise<Encapsulation>;
  decapsulate(algorithm: KemAlgorithm, secretKey: Uint8Array, ciphertext: Uint8Array): Promise<Uint8Array>;
}

const ecdsaOptions = { format: "der", lowS: false } as const;
const ecdsa: Pick<Signer, "keygen" | "sign" | "verify"> = {
  keygen() {
    const secretKey = p256.utils.randomSecretKey();
    return { secretKey, publicKey: p256.getPublicKey(secretKey, false) };
  },
  sign: (signed, secretKey) => p256.sign(signed, secretKey, ecdsaOptions),
  verify: (signature, signed, publicKey) => p256.verify(signature, signed, publicKey, ecdsaOptions),
};
/** The library calls SLH-DSA-SHA2-128s slh_dsa_sha2_128s. */
const slhDsa = new Map<string, unknown>(
  Object.entries(slhDsaSets).map(([name, set]) => [name.replaceAll("_", "-"), set]),
);
const signers = new Map<Algorithm, typeof ecdsa>([
  ...mlDsaNames.map((name) => [name, mlDsa[name]] as const),
  ...slhDsaNames.map((name) => [name, slhDsa.get(name.toLowerCase()) as Signer] as const),
  ["ECDSA-P256", ecdsa],
]);
const kems: Readonly<Record<KemAlgorithm, KEM>> = { ...mlKem, "X-Wing": ml_kem768_x25519 };

function signerOf(algorithm: Algorithm): typeof ecdsa {
  const signer = signers.get(algorithm);
  if (signer === undefined) throw new Error(`noble does not sign with ${algorithm}`);
  return signer;
}

const noble: Party = {
  generate: async (algorithm) => (isKemAlgorithm(algorithm) ? kems[algorithm] : signerOf(algorithm)).keygen(),
  sign: async (algorithm, secretKey) => signerOf(algorithm).sign(message, secretKey, optionsFor(algorithm)),
  verify: async (algorithm, publicKey, signature) =>
    signerOf(algorithm).verify(signature, message, publicKey, optionsFor(algorithm)),
  async encapsulate(algorithm, publicKey) {
    const { cipherText: ciphertext, sharedSecret } = kems[algorithm].encapsulate(publicKey);
    return { ciphertext, sharedSecret };
  },
  decapsulate: async (algorithm, secretKey, ciphertext) => kems[algorithm].decapsulate(ciphertext, secretKey),
};

async function openParty(name: ProviderName): Promise<Party> {
  const provider = await createCryptoProvider(name);
  afterAll(() => provider.close());
  const importSecret = (algorithm: Algorithm, raw: Uint8Array) =>
    provider.importSecretKey(algorithm, { raw });
  return {
    async generate(algorithm) {
      const { publicKey, secretKey } = await provider.generateKeyPair(algorithm);
      return { publicKey: publicKey.exportRaw(), secretKey: secretKey.exportRaw() };
    },
    sign: async (algorithm, raw) =>
      provider.sign(await importSecret(algorithm, raw), message, optionsFor(algorithm)),
    verify: (algorithm, raw, signature) =>
      provider.verify(
        provider.importPublicKey(algorithm, { raw }),
        message,
        signature,
        optionsFor(algorithm),
      ),
    encapsulate: (algorithm, raw) => provider.encapsulate(provider.importPublicKey(algorithm, { raw })),
    decapsulate: async (algorithm, raw, ciphertext) =>
      provider.decapsulate(await importSecret(algorithm, raw), ciphertext),
  };
}

type PartyName = ProviderName | "noble";
const names: readonly PartyName[] = ["openssl", ...(isNativeSkipped ? [] : (["native"] as const)), "noble"];
const parties = new Map<PartyName, Party>([["noble", noble]]);
for (const name of names) if (name !== "noble") parties.set(name, await openParty(name));

function use(name: PartyName): Party {
  const party = parties.get(name);
  if (party === undefined) throw new Error(`no party ${name}`);
  return party;
}

/** Each algorithm for each ordered pair of parties. */
const pairs = <Name extends Algorithm>(algorithms: readonly Name[], of = names) =>
  of.flatMap((from) =>
    of.filter((to) => to !== from).flatMap((to) => algorithms.map((algorithm) => ({ from, to, algorithm }))),
  );

describe("a signature", () => {
  /**
   * The native provider leaves SLH-DSA and ECDSA to OpenSSL, and the official vectors prove each set. Noble needs
   * seconds to sign with the small ones.
   */
  const isLong = process.env.QSP_TEST_LONG === "1";
  const slow = pairs([...slhDsaNames, "ECDSA-P256"], ["openssl", "noble"]).filter(
    ({ from, algorithm }) =>
      !algorithm.startsWith("SLH") ||
      algorithm.endsWith("128f") ||
      (isLong && (from === "openssl" || algorithm.endsWith("f"))),
  );

  it.each([...pairs(mlDsaNames), ...slow])("by $from verifies with $to ($algorithm)", async (row) => {
    const { from, to, algorithm } = row;
    const { publicKey, secretKey } = await use(from).generate(algorithm);
    const signature = await use(from).sign(algorithm, secretKey);
    expect(await use(to).verify(algorithm, publicKey, signature)).toBe(true);
    const changed = flipBit(signature, signature.length >> 1);
    expect(await use(to).verify(algorithm, publicKey, changed)).toBe(false);
  });
});

describe("a key pair", () => {
  it.each(pairs(kemNames))(
    "from $from shares secrets with $to, even for a wrong ciphertext ($algorithm)",
    async ({ from, to, algorithm }) => {
      const { publicKey, secretKey } = await use(from).generate(algorithm);
      const { ciphertext, sharedSecret } = await use(to).encapsulate(algorithm, publicKey);
      expect(await use(from).decapsulate(algorithm, secretKey, ciphertext)).toEqual(sharedSecret);
      const wrong = flipBit(ciphertext, 5);
      const rejected = await use(from).decapsulate(algorithm, secretKey, wrong);
      expect(rejected).not.toEqual(sharedSecret);
      expect(await use(to).decapsulate(algorithm, secretKey, wrong)).toEqual(rejected);
    },
  );
});
