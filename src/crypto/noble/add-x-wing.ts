import type { Algorithm, StandardAlgorithm } from "../algorithms.ts";
import { copyBytes, wipe } from "../bytes.ts";
import type { Engine } from "../engine.ts";
import type { NobleKeyPair } from "./operations.ts";
import type { WorkerPool } from "../openssl/mu-workers.ts";

/** An X-Wing public key as plain bytes. */
export class XWingPublicKey {
  readonly raw: Uint8Array;

  constructor(raw: Uint8Array) {
    this.raw = raw;
  }
}

/** An X-Wing secret key as plain bytes. */
export class XWingSecretKey {
  readonly seed: Uint8Array;
  readonly publicKey: XWingPublicKey;

  /** @param pair its secret bytes are wiped */
  constructor({ raw, seed, publicKey }: NobleKeyPair) {
    this.seed = copyBytes(raw);
    this.publicKey = new XWingPublicKey(publicKey);
    wipe(raw, seed);
  }
}

/**
 * Adds X-Wing to an engine whose library does not have it: the noble library computes it on the worker threads of
 * `pool`. All else stays with the engine.
 */
export function addXWing<PublicHandle, SecretHandle>(
  engine: Engine<PublicHandle, SecretHandle, StandardAlgorithm>,
  pool: WorkerPool,
): Engine<PublicHandle | XWingPublicKey, SecretHandle | XWingSecretKey> {
  return {
    ...engine,

    generateKeyPair: async (algorithm) =>
      algorithm === "X-Wing"
        ? new XWingSecretKey(await pool.run("generateKeyPair", { algorithm }))
        : engine.generateKeyPair(algorithm),
    importPublicKey: (algorithm, raw) =>
      algorithm === "X-Wing" ? new XWingPublicKey(copyBytes(raw)) : engine.importPublicKey(algorithm, raw),
    importSecretKey: async (algorithm, form) =>
      algorithm === "X-Wing"
        ? new XWingSecretKey(await pool.run("importSecretKey", { algorithm, form }))
        : engine.importSecretKey(algorithm, form),
    publicHalf: (key) => (key instanceof XWingSecretKey ? key.publicKey : engine.publicHalf(key)),

    exportPublicKey: (key) =>
      key instanceof XWingPublicKey ? copyBytes(key.raw) : engine.exportPublicKey(key),
    exportSecretKey: (algorithm, key) =>
      key instanceof XWingSecretKey
        ? copyBytes(key.seed)
        : engine.exportSecretKey(requireStandard(algorithm), key),
    exportSeed: (algorithm, key) =>
      key instanceof XWingSecretKey
        ? copyBytes(key.seed)
        : engine.exportSeed(requireStandard(algorithm), key),
    eraseSecretKey: (key) => (key instanceof XWingSecretKey ? wipe(key.seed) : engine.eraseSecretKey(key)),

    sign: (algorithm, key, message, options) =>
      key instanceof XWingSecretKey ? refuseUse() : engine.sign(algorithm, key, message, options),
    signMu: (algorithm, key, mu) =>
      key instanceof XWingSecretKey ? refuseUse() : engine.signMu(algorithm, key, mu),
    verify: (algorithm, key, message, signature, options) =>
      key instanceof XWingPublicKey
        ? refuseUse()
        : engine.verify(algorithm, key, message, signature, options),

    async encapsulate(algorithm, key) {
      return key instanceof XWingPublicKey
        ? pool.run("encapsulate", { algorithm: "X-Wing", publicKey: key.raw })
        : engine.encapsulate(requireStandard(algorithm), key);
    },
    async decapsulate(algorithm, key, ciphertext) {
      return key instanceof XWingSecretKey
        ? pool.run("decapsulate", { algorithm: "X-Wing", secretKey: key.seed, ciphertext })
        : engine.decapsulate(requireStandard(algorithm), key, ciphertext);
    },
  };
}

/** Narrows the algorithm of a key that is not an X-Wing key. */
function requireStandard<Name extends Algorithm>(algorithm: Name): Exclude<Name, "X-Wing"> {
  if (algorithm !== "X-Wing") return algorithm as Exclude<Name, "X-Wing">;
  throw new RangeError("a key of another algorithm was used for X-Wing");
}

/** `CheckedProvider` neither signs nor verifies with KEM keys. */
function refuseUse(): never {
  throw new RangeError("X-Wing keys cannot sign or verify");
}
