/** Reads keys of any algorithm from PEM files. */
import { type Algorithm, kemAlgorithms, kemNames, mlDsaNames, slhDsaNames } from "../crypto/algorithms.ts";
import { wipe } from "../crypto/bytes.ts";
import { decodePkcs8, decodePublicKeyPem } from "../crypto/key-encoding.ts";
import { decodePem } from "../crypto/pem.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "../crypto/provider.ts";
import { usageError } from "./exit-codes.ts";
import { readText } from "./files.ts";

/** The algorithms of key files. */
export const keyAlgorithms = [...mlDsaNames, ...kemNames, ...slhDsaNames] as const;

/** Lends a provider to a function, and closes it afterwards. */
export async function withProvider<T>(use: (provider: CryptoProvider) => Promise<T>): Promise<T> {
  // Loaded on demand, because most verbs do not need it and start faster without it.
  const { createCryptoProvider } = await import("../crypto/create-provider.ts");
  const provider = await createCryptoProvider("openssl");
  try {
    return await use(provider);
  } finally {
    await provider.close();
  }
}

/** Reads a public key. @throws CliError naming the file */
export function readPublicKey(provider: CryptoProvider, path: string): PublicKey {
  return parsePublicKey(provider, readText(path), path);
}

/** Parses a public key. @param origin names it in an error */
export function parsePublicKey(provider: CryptoProvider, pem: string, origin: string): PublicKey {
  const algorithm = keyAlgorithms.find((candidate) => isPublicKeyPem(candidate, pem));
  if (algorithm === undefined)
    throw usageError(`${origin} does not contain an ML-DSA, ML-KEM, X-Wing or SLH-DSA public key in PEM`);
  return explain(origin, () => provider.importPublicKey(algorithm, { pem }));
}

/** Reads a secret key. @throws CliError naming the file */
export function readSecretKey(provider: CryptoProvider, path: string): Promise<SecretKey> {
  return parseSecretKey(provider, readText(path), path);
}

/** Parses a secret key. @param origin names it in an error */
export async function parseSecretKey(
  provider: CryptoProvider,
  pem: string,
  origin: string,
): Promise<SecretKey> {
  const der = explain(origin, () => decodePem("PRIVATE KEY", pem));
  try {
    const algorithm = keyAlgorithms.find((candidate) => decodePkcs8(candidate, der) !== undefined);
    if (algorithm === undefined)
      throw usageError(`${origin} does not contain an ML-DSA, ML-KEM, X-Wing or SLH-DSA secret key in PEM`);
    return await provider.importSecretKey(algorithm, { pem });
  } catch (error) {
    throw explained(origin, error);
  } finally {
    wipe(der);
  }
}

/** @throws CliError if a key is not for signatures */
export function requireSigning(algorithm: Algorithm, origin: string): void {
  if (algorithm in kemAlgorithms)
    throw usageError(`${origin} is an ${algorithm} key, which cannot sign or verify`);
}

function isPublicKeyPem(algorithm: Algorithm, pem: string): boolean {
  try {
    decodePublicKeyPem(algorithm, pem);
    return true;
  } catch {
    return false;
  }
}

function explain<T>(origin: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw explained(origin, error);
  }
}

function explained(origin: string, error: unknown): unknown {
  return error instanceof Error && error.name === "CryptoError"
    ? usageError(`${origin}: ${error.message}`)
    : error;
}
