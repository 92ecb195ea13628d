/** Detects the format and algorithm of a secret key file. */
import { algorithms } from "../../crypto/algorithms.ts";
import { findKeyFileAlgorithm } from "../../crypto/key-file.ts";
import { decodePem, isPem } from "../../crypto/pem.ts";
import { type CliError, usageError } from "../exit-codes.ts";
import { explainKey } from "../files/read.ts";
import { serverKeyAlgorithms } from "./read-keys.ts";

type KeyAlgorithm = (typeof serverKeyAlgorithms)[number];

/** A secret key read from a file. */
export interface KeyFile {
  readonly algorithm: KeyAlgorithm;
  /** PKCS#8 in DER, a JWK, a raw seed, or a raw secret key. The caller wipes it. */
  readonly bytes: Uint8Array;
}

/**
 * Reads a secret key: PKCS#8 in PEM or DER or a JWK, which state their algorithm, or raw bytes of the given
 * algorithm.
 *
 * @param path names the file in error messages
 * @throws CliError
 */
export function readKeyFile(file: Uint8Array, path: string, wanted: string | undefined): KeyFile {
  const given = wanted === undefined ? undefined : requireAlgorithm(wanted);
  const found = explainKey(path, () => findKeyFileAlgorithm(file));
  if (found === undefined) return readRaw(file, path, given);
  const algorithm = serverKeyAlgorithms.find((known) => known === found);
  if (algorithm === undefined) throw notAKey(path);
  if (given !== undefined && given !== algorithm)
    throw usageError(`${path} contains an ${algorithm} key, not ${given}; leave out --algorithm`);
  // Text around the PEM block is not sent to the server.
  const bytes = isPem(file) ? decodePem("PRIVATE KEY", new TextDecoder().decode(file)) : file;
  return { algorithm, bytes };
}

function requireAlgorithm(wanted: string): KeyAlgorithm {
  const algorithm = serverKeyAlgorithms.find((known) => known === wanted);
  if (algorithm !== undefined) return algorithm;
  throw usageError(`--algorithm "${wanted}" is unknown; use one of ${serverKeyAlgorithms.join(", ")}`);
}

function readRaw(file: Uint8Array, path: string, algorithm: KeyAlgorithm | undefined): KeyFile {
  if (algorithm === undefined) {
    if (!rawLengths.has(file.length)) throw notAKey(path);
    throw usageError(`${path} contains ${file.length} raw bytes; name their algorithm with --algorithm`);
  }
  const lengths = listRawLengths(algorithm);
  if (lengths.includes(file.length)) return { algorithm, bytes: file };
  throw usageError(
    `${path} has ${file.length} bytes and is not PKCS#8; a raw ${algorithm} key has ${lengths.join(" or ")} bytes`,
  );
}

/** Lengths of the seed and of the secret key in its standard encoding. */
function listRawLengths(algorithm: KeyAlgorithm): number[] {
  const { seedBytes, secretKeyBytes } = algorithms[algorithm];
  return [...new Set([...(seedBytes === undefined ? [] : [seedBytes]), secretKeyBytes])];
}

const rawLengths = new Set(serverKeyAlgorithms.flatMap(listRawLengths));

function notAKey(path: string): CliError {
  return usageError(`${path} does not contain an ML-DSA, SLH-DSA, ML-KEM, X-Wing or composite secret key`);
}
