import { type Algorithm, algorithms, isMlDsaAlgorithm } from "./algorithms.ts";
import { equalBytes, wipe } from "./bytes.ts";
import { checkAlgorithm, checkBytes } from "./checks.ts";
import { type CryptoError, invalidKey } from "./crypto-error.ts";
import { parseJwkFile, readSecretJwk } from "./jwk.ts";
import { explainPkcs8, findPkcs8Algorithm } from "./key-encoding.ts";
import { decodePem, isPem, maxPemCharacters } from "./pem.ts";
import type { CryptoProvider, SecretKey, SecretKeyMaterial } from "./provider.ts";
import type { JsonObject } from "./strict-json.ts";

/**
 * Imports a secret key from a file that another program wrote. The file may be:
 *
 * - PKCS#8 in PEM, in UTF-8, or in DER, as `decodeSecretKeyPem` describes it: for ML-DSA and ML-KEM the seed, the
 *   expanded key or both (RFC 9881 and 9935, section 6),
 * - a JWK of type AKP (RFC 9964), whose `pub` must match its `priv`,
 * - the bare seed of ML-DSA (32 bytes), ML-KEM (64) or X-Wing (32),
 * - the bare secret key in the form that `SecretKey.exportRaw` returns.
 *
 * The form is detected from the content: no bare key is PEM or PKCS#8, and a seed never has the length of its
 * expanded key.
 *
 * @param file at most 16,384 bytes; the caller wipes it
 * @throws INVALID_KEY, listing the valid forms and lengths, or naming the algorithm found if it differs;
 *   INVALID_ARGUMENT
 */
export async function importKeyFile(
  provider: CryptoProvider,
  algorithm: Algorithm,
  file: Uint8Array,
): Promise<SecretKey> {
  checkAlgorithm(algorithm);
  checkBytes("the key file", file);
  const jwk = parseJwkFile(file);
  return jwk === undefined
    ? provider.importSecretKey(algorithm, readMaterial(algorithm, file))
    : importJwk(provider, algorithm, jwk);
}

/**
 * Finds the algorithm that a secret key file declares.
 *
 * @returns undefined for bytes that are neither PEM, nor PKCS#8, nor a JWK
 * @throws INVALID_KEY if it is one of these but does not contain a supported key
 */
export function findKeyFileAlgorithm(file: Uint8Array): Algorithm | undefined {
  const jwk = parseJwkFile(file);
  if (jwk !== undefined) {
    const { algorithm, seed } = readSecretJwk(jwk);
    wipe(seed);
    return algorithm;
  }
  if (!isPem(file)) return findPkcs8AlgorithmOr(file, undefined);
  const der = decodePem("PRIVATE KEY", new TextDecoder().decode(file));
  try {
    const families = "ML-DSA, SLH-DSA, ML-KEM, X-Wing or a composite";
    return findPkcs8AlgorithmOr(der, `the PEM block does not contain a secret key of ${families}`);
  } finally {
    wipe(der);
  }
}

function findPkcs8AlgorithmOr(der: Uint8Array, problem: string | undefined): Algorithm | undefined {
  const found = findPkcs8Algorithm(der);
  const reason = found === undefined ? (explainPkcs8(der) ?? problem) : undefined;
  if (reason !== undefined) throw invalidKey(reason);
  return found;
}

async function importJwk(
  provider: CryptoProvider,
  algorithm: Algorithm,
  jwk: JsonObject,
): Promise<SecretKey> {
  const { algorithm: found, publicKey, seed } = readSecretJwk(jwk);
  try {
    if (found !== algorithm) throw invalidKey(`the JWK contains an ${found} key; expected ${algorithm}`);
    const secretKey = await provider.importSecretKey(algorithm, { seed });
    if (equalBytes(publicKey, secretKey.publicKey.exportRaw())) return secretKey;
    secretKey.erase();
    throw invalidKey("pub of the JWK does not match its priv");
  } finally {
    wipe(seed);
  }
}

function readMaterial(algorithm: Algorithm, file: Uint8Array): SecretKeyMaterial {
  const { seedBytes, secretKeyBytes } = algorithms[algorithm];
  if (file.length > maxPemCharacters) throw unknownForm(algorithm, file);
  if (isPem(file)) return { pem: new TextDecoder().decode(file) };
  if (findPkcs8Algorithm(file) !== undefined || explainPkcs8(file) !== undefined) return { der: file };
  if (file.length === seedBytes) return { seed: file };
  if (file.length === secretKeyBytes) return { raw: file };
  throw unknownForm(algorithm, file);
}

function unknownForm(algorithm: Algorithm, { length }: Uint8Array): CryptoError {
  const jwk = isMlDsaAlgorithm(algorithm) ? ["a JWK (RFC 9964)"] : [];
  const forms = ["PKCS#8 in PEM", "PKCS#8 in strict DER", ...jwk, ...listBareForms(algorithm)].join(", or ");
  return invalidKey(`${length} bytes are not an ${algorithm} secret key in a known form: ${forms}`);
}

function listBareForms(algorithm: Algorithm): string[] {
  const { family, seedBytes, secretKeyBytes } = algorithms[algorithm];
  const seed = seedBytes === undefined ? [] : [`the seed, ${seedBytes} bytes`];
  if (family === "X-Wing") return seed;
  const name = seedBytes === undefined ? "raw" : "expanded";
  return [...seed, `the ${name} secret key, ${secretKeyBytes} bytes`];
}
