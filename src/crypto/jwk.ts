import { hash } from "node:crypto";
import { algorithms, isMlDsaAlgorithm, type MlDsaAlgorithm, mlDsaNames } from "./algorithms.ts";
import { decodeBase64url, encodeBase64url } from "./base64url.ts";
import { CryptoError, invalidKey } from "./crypto-error.ts";
import type { PublicKey } from "./provider.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from "./strict-json.ts";

/** A public key as a JSON Web Key of type AKP, "algorithm key pair" (RFC 9964, section 3). */
export interface PublicJwk {
  readonly kty: "AKP";
  readonly alg: MlDsaAlgorithm;
  /** The raw public key in base64url. */
  readonly pub: string;
  /** SHA-256 thumbprint (RFC 7638 and RFC 9964, section 6), 43 characters. */
  readonly kid: string;
  readonly use: "sig";
}

/**
 * Converts an ML-DSA public key to a JSON Web Key for a key set.
 *
 * @throws UNSUPPORTED for other algorithms: RFC 9964 registers only ML-DSA
 */
export function toPublicJwk(publicKey: PublicKey): PublicJwk {
  const { algorithm } = publicKey;
  if (!isMlDsaAlgorithm(algorithm))
    throw new CryptoError("UNSUPPORTED", `no standard defines a JWK for ${algorithm}`);
  const pub = encodeBase64url(publicKey.exportRaw());
  return { kty: "AKP", alg: algorithm, pub, kid: computeThumbprint(algorithm, pub), use: "sig" };
}

/** SHA-256 over the required members in lexicographic order (RFC 7638, section 3), in base64url. */
function computeThumbprint(alg: MlDsaAlgorithm, pub: string): string {
  return hash("sha256", JSON.stringify({ alg, kty: "AKP", pub }), "base64url");
}

/** A public key from a file. */
export interface JwkPublicKey {
  readonly algorithm: MlDsaAlgorithm;
  /** Raw. */
  readonly publicKey: Uint8Array;
}

/** A secret key from a file. */
export interface JwkSecretKey extends JwkPublicKey {
  /** The caller wipes it. */
  readonly seed: Uint8Array;
}

/**
 * Parses a file that may be a JWK or a JWK set.
 *
 * @returns undefined for anything else
 */
export function parseJwkFile(file: Uint8Array): JsonObject | undefined {
  const hasByteOrderMark = file[0] === 0xef && file[1] === 0xbb && file[2] === 0xbf;
  return parseJsonObject(hasByteOrderMark ? file.subarray(3) : file);
}

/**
 * Reads a public JWK, or the public ML-DSA keys of a JWK set. As RFC 7517, section 5, requires, it skips
 * other key types in a set. An unreadable ML-DSA key is an error.
 *
 * @returns at least one key
 * @throws INVALID_KEY, naming the member
 */
export function readPublicJwks(document: JsonObject): JwkPublicKey[] {
  if (document.keys === undefined) return [readPublicJwk(document, "the JWK")];
  if (!Array.isArray(document.keys)) throw invalidKey("the JWK set must have a list of keys");
  const keys = document.keys.flatMap((key, i) =>
    isSigningJwk(key) ? [readPublicJwk(key, `key ${i + 1} of the JWK set`)] : [],
  );
  if (keys.length > 0) return keys;
  throw invalidKey(`the JWK set has no ML-DSA key (kty AKP and alg ${mlDsaNames.join(", ")}; RFC 9964)`);
}

/**
 * Reads a secret JWK, whose `priv` is the seed (RFC 9964, section 3).
 *
 * @throws INVALID_KEY, naming the member
 */
export function readSecretJwk(document: JsonObject): JwkSecretKey {
  if (document.keys !== undefined) throw invalidKey("the file is a JWK set; give a single JWK with its priv");
  const { algorithm, publicKey } = readMembers(document, "the JWK", "sign");
  const { seedBytes = 0, secretKeyBytes } = algorithms[algorithm];
  if (document.priv === undefined)
    throw invalidKey("the JWK has no priv: it is a public key; give the secret key");
  const seed = decodeMember(document.priv);
  if (seed?.length === seedBytes) return { algorithm, publicKey, seed };
  if (seed?.length === secretKeyBytes)
    throw invalidKey(
      `priv of the JWK is the expanded key of ${algorithm}, which RFC 9964 does not allow; ` +
        `give its seed of ${seedBytes} bytes as priv, or the expanded key as PKCS#8 or as ${secretKeyBytes} raw bytes`,
    );
  throw invalidKey(`priv of the JWK must be the seed of ${algorithm}: ${seedBytes} bytes in base64url`);
}

function readPublicJwk(jwk: JsonObject, name: string): JwkPublicKey {
  const read = readMembers(jwk, name, "verify");
  if (jwk.priv === undefined) return read;
  throw invalidKey(`${name} has priv: it is a secret key; give the public key, without priv`);
}

function isSigningJwk(key: JsonValue): key is JsonObject {
  if (!isJsonObject(key)) throw invalidKey("a key of the JWK set is not an object");
  return key.kty === "AKP" && key.use !== "enc" && findAlgorithm(key) !== undefined;
}

function findAlgorithm({ alg }: JsonObject): MlDsaAlgorithm | undefined {
  return mlDsaNames.find((known) => known === alg);
}

function readMembers(jwk: JsonObject, name: string, operation: "sign" | "verify"): JwkPublicKey {
  if (jwk.kty !== "AKP") throw invalidKey(`kty of ${name} must be "AKP" (RFC 9964)`);
  const algorithm = findAlgorithm(jwk);
  if (algorithm === undefined) throw invalidKey(`alg of ${name} must be one of ${mlDsaNames.join(", ")}`);
  if (jwk.use !== undefined && jwk.use !== "sig") throw invalidKey(`use of ${name} must be "sig" if present`);
  const { key_ops: operations = [operation] } = jwk;
  if (!isOperationList(operations))
    throw invalidKey(
      `key_ops of ${name} must be a list of strings without duplicates (RFC 7517, section 4.3)`,
    );
  if (!operations.includes(operation))
    throw invalidKey(`key_ops of ${name} must include "${operation}" if present`);
  const publicKey = jwk.pub === undefined ? undefined : decodeMember(jwk.pub);
  const { publicKeyBytes } = algorithms[algorithm];
  if (publicKey?.length === publicKeyBytes) return { algorithm, publicKey };
  throw invalidKey(
    `pub of ${name} must be the public key of ${algorithm}: ${publicKeyBytes} bytes in base64url`,
  );
}

function isOperationList(value: JsonValue): value is string[] {
  return (
    Array.isArray(value) &&
    value.every((each) => typeof each === "string") &&
    new Set(value).size === value.length
  );
}

function decodeMember(value: JsonValue): Uint8Array | undefined {
  return typeof value === "string" ? decodeBase64url(value) : undefined;
}
