import { type Algorithm, algorithms } from "./algorithms.ts";
import { checkAlgorithm, checkBytes } from "./checks.ts";
import { CryptoError } from "./crypto-error.ts";
import { explainPkcs8, findPkcs8Algorithm } from "./key-encoding.ts";
import { isPem, maxPemCharacters } from "./pem.ts";
import type { CryptoProvider, SecretKey, SecretKeyMaterial } from "./provider.ts";

/**
 * Imports a secret key from a file that another program wrote. It can be:
 *
 * - PKCS#8 in PEM, in UTF-8, or in DER, as `decodeSecretKeyPem` describes it: for ML-DSA and ML-KEM the seed, the
 *   expanded key or both (RFC 9881 and 9935, section 6),
 * - the bare seed of ML-DSA (32 bytes), ML-KEM (64) or X-Wing (32),
 * - the bare secret key in the form that `SecretKey.exportRaw` returns.
 *
 * The form is found by the content: no bare key is PEM or PKCS#8, and a seed has another length than its
 * expanded key.
 *
 * @param file at most 16,384 bytes. The caller wipes it.
 * @throws INVALID_KEY; its message names the valid forms with their lengths, or the algorithm found if it is another.
 *   INVALID_ARGUMENT
 */
export async function importKeyFile(
  provider: CryptoProvider,
  algorithm: Algorithm,
  file: Uint8Array,
): Promise<SecretKey> {
  checkAlgorithm(algorithm);
  checkBytes("the key file", file);
  return provider.importSecretKey(algorithm, readMaterial(algorithm, file));
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
  const forms = ["PKCS#8 in PEM", "PKCS#8 in strict DER", ...listBareForms(algorithm)].join(", or ");
  return new CryptoError(
    "INVALID_KEY",
    `${length} bytes are no ${algorithm} secret key in a known form: ${forms}`,
  );
}

function listBareForms(algorithm: Algorithm): string[] {
  const { family, seedBytes, secretKeyBytes } = algorithms[algorithm];
  const seed = seedBytes === undefined ? [] : [`the seed, ${seedBytes} bytes`];
  if (family === "X-Wing") return seed;
  const name = seedBytes === undefined ? "raw" : "expanded";
  return [...seed, `the ${name} secret key, ${secretKeyBytes} bytes`];
}
