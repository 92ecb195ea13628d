import {
  createHash,
  decapsulate,
  encapsulate,
  hash,
  type KeyObject,
  type SignKeyObjectInput,
  sign,
  type VerifyKeyObjectInput,
  verify,
} from "node:crypto";
import { availableParallelism } from "node:os";
import {
  algorithms,
  isMlDsaAlgorithm,
  isMlKemAlgorithm,
  type MlDsaAlgorithm,
  type MlKemAlgorithm,
  type StandardAlgorithm,
} from "../algorithms.ts";
import { copyBytes, equalBytes, wipe } from "../bytes.ts";
import { CryptoError } from "../crypto-error.ts";
import type { CheckedSignatureOptions, Engine, IncrementalHash, SeedOrRaw } from "../engine.ts";
import { decodePkcs8 } from "../key-encoding.ts";
import { addXWing, type XWingPublicKey, type XWingSecretKey } from "../noble/add-x-wing.ts";
import { expandSeed } from "../noble.ts";
import { WorkerPool } from "./mu-workers.ts";
import type { Encapsulation } from "../provider.ts";
import { type OpenSslSecretKey, parsePublicKey, parseSecretKey, startKeyGeneration } from "./key-objects.ts";

/** The form of OpenSSL's public keys, and of the keys that noble computes with for it. */
export type OpenSslPublicHandle = KeyObject | XWingPublicKey;
/** The form of the secret keys. */
export type OpenSslSecretHandle = OpenSslSecretKey | XWingSecretKey;

/**
 * The engine over node:crypto. Key generation, signing, verifying, encapsulation and decapsulation
 * run in libuv's thread pool, whose size is UV_THREADPOOL_SIZE (default 4; one thread for each
 * core gives the best latency). Parsing a key runs on the calling thread and takes as long as
 * generating one, 0.2 ms for ML-DSA-65: keep parsed keys.
 *
 * node:crypto cannot sign μ, and has X-Wing only as an experiment of its Web Crypto API. The noble library does both on
 * worker threads, which start with the first such call.
 */
export function createOpenSslEngine(): Engine<OpenSslPublicHandle, OpenSslSecretHandle> {
  const noblePool = new WorkerPool(availableParallelism());
  return addXWing(createStandardEngine(noblePool), noblePool);
}

/** The engine without X-Wing. */
function createStandardEngine(noblePool: WorkerPool): Engine<KeyObject, OpenSslSecretKey, StandardAlgorithm> {
  return {
    name: "openssl",
    version: `OpenSSL ${process.versions.openssl}`,

    generateKeyPair(algorithm) {
      const hasSeed = algorithms[algorithm].seedBytes !== undefined;
      return new Promise<OpenSslSecretKey>((resolve, reject) => {
        startKeyGeneration(algorithm, (error, publicKey, secretKey) => {
          if (error) reject(error);
          else resolve({ secretKey, publicKey, hasSeed });
        });
      });
    },

    importPublicKey: parsePublicKey,

    async importSecretKey(algorithm, form) {
      const parsed = parseSecretKey(algorithm, form);
      if (form.kind !== "raw" || (await halvesFit(algorithm, parsed))) return parsed;
      throw new CryptoError(
        "INVALID_KEY",
        `the ${algorithm} secret key does not match the public key inside it`,
      );
    },

    publicHalf: (secretKey) => secretKey.publicKey,
    exportPublicKey: (publicKey) => plainBytes(publicKey.export({ format: "raw-public" })),

    exportSecretKey(algorithm, key) {
      if (!isMlDsaAlgorithm(algorithm) && !isMlKemAlgorithm(algorithm)) {
        return plainBytes(key.secretKey.export({ format: "raw-private" }));
      }
      const exported = exportLatticeKey(algorithm, key);
      if (exported.kind === "raw") return exported.raw;
      try {
        return expandSeed(algorithm, exported.seed);
      } finally {
        wipe(exported.seed);
      }
    },

    exportSeed(_algorithm, { secretKey, hasSeed }) {
      return hasSeed ? plainBytes(secretKey.export({ format: "raw-seed" })) : undefined;
    },

    /** OpenSSL wipes a key when the last KeyObject that refers to it is collected. */
    eraseSecretKey() {},

    sign: (algorithm, { secretKey }, message, options) =>
      signWith(chooseDigest(algorithm), message, toNodeOptions(secretKey, options)),
    async signMu(algorithm, key, mu) {
      const secretKey = exportLatticeKey(algorithm, key);
      try {
        return await noblePool.run("signMu", { algorithm, secretKey, mu });
      } finally {
        wipe(secretKey.kind === "seed" ? secretKey.seed : secretKey.raw);
      }
    },
    verify: (algorithm, publicKey, message, signature, options) =>
      verifyWith(chooseDigest(algorithm), message, toNodeOptions(publicKey, options), signature),
    encapsulate: (_algorithm, publicKey) => encapsulateTo(publicKey),
    decapsulate: (_algorithm, { secretKey }, ciphertext) => decapsulateWith(secretKey, ciphertext),

    sha256: (message) => plainBytes(hash("sha256", message, "buffer")),
    startShake256,
    close: () => noblePool.close(),
  };
}

/** Exports the form that OpenSSL supports: the seed, or the expanded key without a seed. The caller wipes it. */
function exportLatticeKey(
  algorithm: MlDsaAlgorithm | MlKemAlgorithm,
  { secretKey, hasSeed }: OpenSslSecretKey,
): SeedOrRaw {
  if (hasSeed) return { kind: "seed", seed: plainBytes(secretKey.export({ format: "raw-seed" })) };
  const pkcs8 = secretKey.export({ format: "der", type: "pkcs8" });
  try {
    const raw = decodePkcs8(algorithm, pkcs8)?.raw;
    if (raw === undefined) throw new Error(`OpenSSL exports ${algorithm} in an unknown form`);
    return { kind: "raw", raw: copyBytes(raw) };
  } finally {
    wipe(pkcs8);
  }
}

function startShake256(outputBytes: number): IncrementalHash {
  const hash = createHash("shake256", { outputLength: outputBytes });
  return {
    update(chunk) {
      hash.update(chunk);
    },
    digest: () => plainBytes(hash.digest()),
  };
}

/**
 * Checks that a secret key matches the public key inside it, where OpenSSL does not. For ML-KEM it
 * runs the pair-wise check of FIPS 203, section 7.1. For SLH-DSA it verifies a signature, which is
 * valid only when PK.root is the root of the tree that signed.
 */
async function halvesFit(
  algorithm: StandardAlgorithm,
  { secretKey, publicKey }: OpenSslSecretKey,
): Promise<boolean> {
  if (isMlKemAlgorithm(algorithm)) {
    const { ciphertext, sharedSecret } = await encapsulateTo(publicKey);
    const decapsulated = await decapsulateWith(secretKey, ciphertext);
    const fit = equalBytes(sharedSecret, decapsulated);
    wipe(sharedSecret, decapsulated);
    return fit;
  }
  if (algorithms[algorithm].family !== "SLH-DSA") return true;
  const message = new Uint8Array();
  const signature = await signWith(null, message, { key: secretKey });
  return verifyWith(null, message, { key: publicKey }, signature);
}

/** The digest to pass to node:crypto; the post-quantum algorithms have their own. */
type Digest = "sha256" | null;

function chooseDigest(algorithm: StandardAlgorithm): Digest {
  return algorithm === "ECDSA-P256" ? "sha256" : null;
}

function toNodeOptions(key: KeyObject, { context, ecdsaEncoding }: CheckedSignatureOptions) {
  return { key, dsaEncoding: ecdsaEncoding, context };
}

function signWith(digest: Digest, message: Uint8Array, options: SignKeyObjectInput): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    sign(digest, message, options, (error, signature) => {
      if (error) reject(error);
      else resolve(plainBytes(signature));
    });
  });
}

function verifyWith(
  digest: Digest,
  message: Uint8Array,
  options: VerifyKeyObjectInput,
  signature: Uint8Array,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    verify(digest, message, options, signature, (error, valid) => {
      if (error) reject(error);
      else resolve(valid);
    });
  });
}

function encapsulateTo(publicKey: KeyObject): Promise<Encapsulation> {
  return new Promise((resolve, reject) => {
    encapsulate(publicKey, (error, result) => {
      if (error) reject(error);
      else resolve({ ciphertext: plainBytes(result.ciphertext), sharedSecret: plainBytes(result.sharedKey) });
    });
  });
}

function decapsulateWith(secretKey: KeyObject, ciphertext: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    decapsulate(secretKey, ciphertext, (error, sharedSecret) => {
      if (error) reject(error);
      else resolve(plainBytes(sharedSecret));
    });
  });
}

/** A plain view of a Buffer, whose methods differ from those of Uint8Array. */
function plainBytes(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
