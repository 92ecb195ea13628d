import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { isMlDsaAlgorithm, isMlKemAlgorithm, type StandardAlgorithm } from "../algorithms.ts";
import { wipe } from "../bytes.ts";
import { invalidKey } from "../crypto-error.ts";
import type { SecretKeyForm } from "../engine.ts";
import { encodePkcs8 } from "../key-encoding.ts";

/** A parsed OpenSSL secret key with its public half. */
export interface OpenSslSecretKey {
  readonly secretKey: KeyObject;
  readonly publicKey: KeyObject;
  /** Whether OpenSSL has the seed; it exports the expanded form only of keys without one. */
  readonly hasSeed: boolean;
}

type KeyPairCallback = (error: Error | null, publicKey: KeyObject, secretKey: KeyObject) => void;

const ellipticCurve = { asymmetricKeyType: "ec", namedCurve: "P-256" } as const;

/** Starts key generation in libuv's thread pool. */
export function startKeyGeneration(algorithm: StandardAlgorithm, done: KeyPairCallback): void {
  if (algorithm === "ECDSA-P256") generateKeyPair("ec", { namedCurve: "P-256" }, done);
  else if (isMlKemAlgorithm(algorithm)) generateKeyPair(keyType(algorithm), done);
  else if (isMlDsaAlgorithm(algorithm)) generateKeyPair(keyType(algorithm), done);
  else generateKeyPair(keyType(algorithm), done);
}

/**
 * Parses a raw public key.
 *
 * @throws INVALID_KEY if OpenSSL rejects it, for example because an ECDSA point is not on the curve
 */
export function parsePublicKey(algorithm: StandardAlgorithm, raw: Uint8Array): KeyObject {
  const type = algorithm === "ECDSA-P256" ? ellipticCurve : { asymmetricKeyType: keyType(algorithm) };
  try {
    return createPublicKey({ key: raw, format: "raw-public", ...type });
  } catch {
    throw invalidKey(`OpenSSL rejects the ${algorithm} public key`);
  }
}

/**
 * Parses a secret key. OpenSSL derives an ML-DSA or ML-KEM key from its seed, compares the seed with the
 * expanded form if both are given, and checks that an expanded ML-DSA key is consistent. It does not check an
 * expanded ML-KEM or SLH-DSA key against its public half.
 *
 * @throws INVALID_KEY
 */
export function parseSecretKey(algorithm: StandardAlgorithm, form: SecretKeyForm): OpenSslSecretKey {
  try {
    const secretKey = createSecretKey(algorithm, form);
    return { secretKey, publicKey: createPublicKey(secretKey), hasSeed: form.kind !== "raw" };
  } catch {
    throw invalidKey(
      `OpenSSL rejects the ${algorithm} secret key: its parts are out of range or inconsistent`,
    );
  }
}

function createSecretKey(algorithm: StandardAlgorithm, form: SecretKeyForm): KeyObject {
  if (algorithm === "ECDSA-P256") {
    if (form.kind !== "raw") throw new RangeError(`${algorithm} has no seed`);
    return createPrivateKey({ key: form.raw, format: "raw-private", ...ellipticCurve });
  }
  if (form.kind === "seed") {
    return createPrivateKey({ key: form.seed, format: "raw-seed", asymmetricKeyType: keyType(algorithm) });
  }
  const der = encodePkcs8(
    algorithm,
    form.kind === "raw" ? { raw: form.raw } : { seed: form.seed, raw: form.raw },
  );
  try {
    return createPrivateKey({ key: Buffer.from(der.buffer), format: "der", type: "pkcs8" });
  } finally {
    wipe(der);
  }
}

/** Node uses our names in lower case; the type checker verifies this against @types/node. */
function keyType<Name extends Exclude<StandardAlgorithm, "ECDSA-P256">>(algorithm: Name): Lowercase<Name> {
  return algorithm.toLowerCase() as Lowercase<Name>;
}
