import { p256 } from "@noble/curves/nist.js";
import type { KEM, Signer } from "@noble/post-quantum/utils.js";
import {
  type Algorithm,
  algorithms,
  isKemAlgorithm,
  isMlDsaAlgorithm,
  isMlKemAlgorithm,
  type KemAlgorithm,
  type MlDsaAlgorithm,
  type PostQuantumSignatureAlgorithm,
  type SignatureAlgorithm,
} from "../algorithms.ts";
import { copyBytes, equalBytes, wipe } from "../bytes.ts";
import { CryptoError } from "../crypto-error.ts";
import type { CheckedSignatureOptions, SecretKeyForm, SeedOrRaw } from "../engine.ts";
import { readEncapsulationKey } from "../ml-kem.ts";
import type { Encapsulation } from "../provider.ts";
import { deriveMlDsaPublicKey } from "./ml-dsa-key.ts";
import { expandSeed, mlDsa, mlKem, slhDsa } from "../noble.ts";
import { findXWing } from "./x-wing.ts";

/** A key pair as plain bytes; the secret key is in the expanded form, for X-Wing the seed. */
export interface NobleKeyPair {
  readonly publicKey: Uint8Array;
  readonly raw: Uint8Array;
  readonly seed: Uint8Array | undefined;
}

interface SignInput extends CheckedSignatureOptions {
  readonly algorithm: SignatureAlgorithm;
  readonly secretKey: Uint8Array;
  readonly message: Uint8Array;
}

interface VerifyInput extends CheckedSignatureOptions {
  readonly algorithm: SignatureAlgorithm;
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  readonly signature: Uint8Array;
}

interface SignMuInput {
  readonly algorithm: MlDsaAlgorithm;
  readonly secretKey: SeedOrRaw;
  readonly mu: Uint8Array;
}

/**
 * The operations of a worker. Each is one synchronous call with plain values, which cross the thread
 * boundary as copies. `Engine` documents what they do and what they may rely on.
 */
export const operations = {
  generateKeyPair({ algorithm }: { algorithm: Algorithm }): NobleKeyPair {
    if (algorithm === "ECDSA-P256") {
      const raw = p256.utils.randomSecretKey();
      return { raw, publicKey: p256.getPublicKey(raw, false), seed: undefined };
    }
    if (isMlDsaAlgorithm(algorithm) || isKemAlgorithm(algorithm)) {
      return expand(algorithm, crypto.getRandomValues(new Uint8Array(algorithms[algorithm].seedBytes ?? 0)));
    }
    const { secretKey, publicKey } = slhDsa[algorithm].keygen();
    return { raw: secretKey, publicKey, seed: undefined };
  },

  importSecretKey({ algorithm, form }: { algorithm: Algorithm; form: SecretKeyForm }): NobleKeyPair {
    if (form.kind === "raw") {
      return { raw: form.raw, publicKey: derivePublicKey(algorithm, form.raw), seed: undefined };
    }
    if (!isMlDsaAlgorithm(algorithm) && !isKemAlgorithm(algorithm)) throw new RangeError("no seed form");
    const keyPair = expand(algorithm, form.seed);
    if (form.kind === "seed" || equalBytes(keyPair.raw, form.raw)) return keyPair;
    wipe(keyPair.raw);
    throw new CryptoError("INVALID_KEY", `the ${algorithm} seed does not match the expanded secret key`);
  },

  sign({ algorithm, secretKey, message, context, ecdsaEncoding }: SignInput): Uint8Array {
    if (algorithm !== "ECDSA-P256") {
      return findSigner(algorithm).sign(message, secretKey, contextOption(context));
    }
    // extraEntropy: hedged nonces; lowS: false, because FIPS 186-5 has no such rule.
    const format = nobleFormat(ecdsaEncoding);
    return p256.sign(message, secretKey, { format, lowS: false, extraEntropy: true });
  },

  /** Also accepts a seed, because expanding it takes 0.4 to 3 ms. */
  signMu({ algorithm, secretKey, mu }: SignMuInput): Uint8Array {
    const expanded = secretKey.kind === "seed" ? expandSeed(algorithm, secretKey.seed) : secretKey.raw;
    try {
      // Without extraEntropy the library draws the 32 bytes of the hedged form (FIPS 204, section 3.4).
      return mlDsa[algorithm].internal.sign(mu, expanded, { externalMu: true });
    } finally {
      wipe(expanded);
    }
  },

  verify({ algorithm, publicKey, message, signature, context, ecdsaEncoding }: VerifyInput): boolean {
    if (algorithm !== "ECDSA-P256") {
      return findSigner(algorithm).verify(signature, message, publicKey, contextOption(context));
    }
    return p256.verify(signature, message, publicKey, { format: nobleFormat(ecdsaEncoding), lowS: false });
  },

  encapsulate({ algorithm, publicKey }: { algorithm: KemAlgorithm; publicKey: Uint8Array }): Encapsulation {
    const { cipherText, sharedSecret } = findKem(algorithm).encapsulate(publicKey);
    return { ciphertext: cipherText, sharedSecret };
  },

  decapsulate(input: { algorithm: KemAlgorithm; secretKey: Uint8Array; ciphertext: Uint8Array }): Uint8Array {
    return findKem(input.algorithm).decapsulate(input.ciphertext, input.secretKey);
  },
};

export type Operations = typeof operations;

function expand(algorithm: MlDsaAlgorithm | KemAlgorithm, seed: Uint8Array): NobleKeyPair {
  const parameterSet = isKemAlgorithm(algorithm) ? findKem(algorithm) : mlDsa[algorithm];
  const { secretKey, publicKey } = parameterSet.keygen(seed);
  return { raw: secretKey, publicKey, seed };
}

/** Derives the public key and checks it against the parts of it in the secret key. */
function derivePublicKey(algorithm: Algorithm, raw: Uint8Array): Uint8Array {
  if (algorithm === "ECDSA-P256") return p256.getPublicKey(raw, false);
  if (isMlDsaAlgorithm(algorithm)) return deriveMlDsaPublicKey(algorithm, raw);
  if (algorithm === "X-Wing") throw new RangeError("an X-Wing key comes as its seed");
  if (isMlKemAlgorithm(algorithm)) {
    // FIPS 203, section 7.1: the pair-wise check for a key that comes without its seed.
    const publicKey = readEncapsulationKey(algorithm, raw);
    const { cipherText, sharedSecret } = mlKem[algorithm].encapsulate(publicKey);
    const decapsulated = mlKem[algorithm].decapsulate(cipherText, raw);
    const halvesFit = equalBytes(sharedSecret, decapsulated);
    wipe(sharedSecret, decapsulated);
    if (halvesFit) return copyBytes(publicKey);
  } else {
    // FIPS 205, algorithm 18: SK.seed ‖ SK.prf ‖ PK.seed determine PK.root.
    const { secretKey, publicKey } = slhDsa[algorithm].keygen(raw.subarray(0, (raw.length / 4) * 3));
    const rootFits = equalBytes(secretKey, raw);
    wipe(secretKey);
    if (rootFits) return publicKey;
  }
  throw new CryptoError("INVALID_KEY", `the ${algorithm} secret key does not match the public key inside it`);
}

function findKem(algorithm: KemAlgorithm): KEM {
  return algorithm === "X-Wing" ? findXWing() : mlKem[algorithm];
}

function findSigner(algorithm: PostQuantumSignatureAlgorithm): Signer {
  return isMlDsaAlgorithm(algorithm) ? mlDsa[algorithm] : slhDsa[algorithm];
}

function contextOption(context: Uint8Array | undefined): { context?: Uint8Array } {
  return context === undefined ? {} : { context };
}

function nobleFormat(ecdsaEncoding: CheckedSignatureOptions["ecdsaEncoding"]): "der" | "compact" {
  return ecdsaEncoding === "der" ? "der" : "compact";
}
