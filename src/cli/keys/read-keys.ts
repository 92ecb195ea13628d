/** Reads keys of any supported algorithm from user-supplied files. */
import {
  type Algorithm,
  compositeNames,
  isCompositeAlgorithm,
  kemAlgorithms,
  kemNames,
  mlDsaNames,
  slhDsaNames,
} from "../../crypto/algorithms.ts";
import { wipe } from "../../crypto/bytes.ts";
import { invalidKey } from "../../crypto/crypto-error.ts";
import { parseJwkFile, readPublicJwks } from "../../crypto/jwk.ts";
import { findPublicKeyAlgorithm } from "../../crypto/key-encoding.ts";
import { findKeyFileAlgorithm, importKeyFile } from "../../crypto/key-file.ts";
import {
  decodePemBlock,
  encodePem,
  findPemBlocks,
  maxPemCharacters,
  type PemBlock,
} from "../../crypto/pem.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "../../crypto/provider.ts";
import { usageError } from "../exit-codes.ts";
import { explainKey, explainKeyError, maxWholeBytes, readText, readWhole } from "../files/read.ts";

/** Algorithms of keys in local files: all final standards, and X-Wing. */
export const keyAlgorithms = [...mlDsaNames, ...kemNames, ...slhDsaNames] as const;

/** Algorithms of server-held keys, and of public keys that verify their signatures. */
export const serverKeyAlgorithms = [...keyAlgorithms, ...compositeNames] as const;

/** Runs a function with a crypto provider, and closes the provider afterwards. */
export async function withProvider<T>(use: (provider: CryptoProvider) => Promise<T>): Promise<T> {
  // Loaded on demand: most verbs do not need it and start faster without it.
  const { createCryptoProvider } = await import("../../crypto/create-provider.ts");
  const provider = await createCryptoProvider("openssl");
  try {
    return await use(provider);
  } finally {
    await provider.close();
  }
}

/**
 * Reads a file that contains one public key.
 *
 * @throws CliError naming the file
 */
export function readPublicKey(provider: CryptoProvider, path: string): PublicKey {
  return parsePublicKey(provider, readText(path), path);
}

/**
 * Reads a file that contains one public key of the given algorithm.
 *
 * @returns PEM, for a request
 * @throws CliError naming the file
 */
export function readPublicKeyPem(path: string, algorithm: Algorithm): Promise<string> {
  return withProvider(async (provider) => {
    const publicKey = readPublicKey(provider, path);
    if (publicKey.algorithm === algorithm) return publicKey.toPem();
    throw usageError(`${path} is an ${publicKey.algorithm} key; expected an ${algorithm} key`);
  });
}

/**
 * Parses a text that contains one public key.
 *
 * @param origin names the text in error messages
 */
export function parsePublicKey(provider: CryptoProvider, text: string, origin: string): PublicKey {
  const [publicKey, ...others] = parsePublicKeys(provider, text, origin);
  if (others.length === 0) return publicKey;
  throw usageError(`${origin} contains ${others.length + 1} public keys; expected one`);
}

/**
 * Parses all public keys in a text: PEM blocks, a JWK, or a JWK set.
 *
 * @param origin names the text in error messages
 */
export function parsePublicKeys(
  provider: CryptoProvider,
  text: string,
  origin: string,
): [PublicKey, ...PublicKey[]] {
  const jwks = parseJwkFile(new TextEncoder().encode(text));
  const [first, ...others] = explainKey(origin, () =>
    jwks === undefined
      ? findPemBlocks(text, maxWholeBytes).map((block) => importBlock(provider, block))
      : readPublicJwks(jwks).map(({ algorithm, publicKey }) =>
          provider.importPublicKey(algorithm, { raw: publicKey }),
        ),
  );
  if (first !== undefined) return [first, ...others];
  throw usageError(`${origin} does not contain ${aPublicKey} in PEM, and is not a JWK or JWK set`);
}

const aPublicKey = "an ML-DSA, ML-KEM, X-Wing, SLH-DSA or composite public key";

/** @throws CryptoError for a block that is not a public key: skipping it could hide a mix-up of files */
function importBlock(provider: CryptoProvider, block: PemBlock): PublicKey {
  const { label, line } = block;
  if (label.endsWith("PRIVATE KEY"))
    throw invalidKey(`line ${line} begins a secret key; name the public key file`);
  const hint = label.includes("CERTIFICATE") ? "; give a certificate with --certificate" : "";
  if (label !== "PUBLIC KEY")
    throw invalidKey(`line ${line} begins a ${label}; expected a PUBLIC KEY${hint}`);
  const der = decodePemBlock(block);
  const found = findPublicKeyAlgorithm(der);
  const algorithm = serverKeyAlgorithms.find((known) => known === found);
  if (algorithm === undefined) throw invalidKey(`the PUBLIC KEY in line ${line} is not ${aPublicKey}`);
  return provider.importPublicKey(algorithm, { pem: encodePem(label, der) });
}

/**
 * Reads a secret key: PKCS#8 in PEM or DER, or a JWK.
 *
 * @throws CliError naming the file
 */
export async function readSecretKey(provider: CryptoProvider, path: string): Promise<SecretKey> {
  const file = await readWhole(path, maxPemCharacters);
  try {
    return await importSecretKey(provider, file, path);
  } finally {
    wipe(file);
  }
}

/**
 * Parses a secret key in PEM.
 *
 * @param origin names the text in error messages
 */
export function parseSecretKey(provider: CryptoProvider, pem: string, origin: string): Promise<SecretKey> {
  return importSecretKey(provider, new TextEncoder().encode(pem), origin);
}

async function importSecretKey(
  provider: CryptoProvider,
  file: Uint8Array,
  origin: string,
): Promise<SecretKey> {
  const found = explainKey(origin, () => findKeyFileAlgorithm(file));
  if (found !== undefined && isCompositeAlgorithm(found))
    throw usageError(
      `${origin} contains an ${found} key, which only the server uses; import it with qsp kms import`,
    );
  const algorithm = keyAlgorithms.find((known) => known === found);
  if (algorithm === undefined)
    throw usageError(
      `${origin} does not contain an ML-DSA, ML-KEM, X-Wing or SLH-DSA secret key in PEM or DER, or as a JWK`,
    );
  try {
    return await importKeyFile(provider, algorithm, file);
  } catch (error) {
    throw explainKeyError(origin, error);
  }
}

/** @throws CliError if the key is for key encapsulation, not for signing */
export function requireSigning(algorithm: Algorithm, origin: string): void {
  if (algorithm in kemAlgorithms)
    throw usageError(`${origin} is an ${algorithm} key, which cannot sign or verify`);
}
