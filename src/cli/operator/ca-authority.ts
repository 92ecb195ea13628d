/** The files of the operator's private CA. */
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { ConfigError } from "../../config.ts";
import type { CertificateAlgorithm, CertificateAndKey } from "../../crypto/x509.ts";
import { maxSmallFileBytes, readFileWithin } from "../../read-file.ts";
import { describeSystemError } from "../../system-error.ts";

/** The two CAs, with the suffix of their files and of the files that they sign. */
export const authorities: readonly { algorithm: CertificateAlgorithm; suffix: string; meaning: string }[] = [
  { algorithm: "ECDSA-P256", suffix: "", meaning: "ECDSA-P256, which every client accepts" },
  { algorithm: "ML-DSA-65", suffix: "-mldsa", meaning: "ML-DSA-65, for clients that accept it" },
];

export function directoryIn(dataDir: string): string {
  return join(resolve(dataDir), "tls");
}

/** Returns the file names of a certificate and its key. */
export function nameFiles(name: string, suffix: string) {
  return { key: `${name}${suffix}.key`, certificate: `${name}${suffix}.crt` };
}

/** Returns whether a directory contains any CA file. */
export function hasAuthorityFile(directory: string): boolean {
  const files = authorities.flatMap(({ suffix }) => Object.values(nameFiles("ca", suffix)));
  return files.some((file) => existsSync(join(directory, file)));
}

/**
 * Reads the CA with the given suffix.
 *
 * @throws ConfigError if a file is missing, or other users can read its key
 */
export function readAuthority(directory: string, suffix: string): CertificateAndKey {
  const { key, certificate } = nameFiles("ca", suffix);
  return {
    certificatePem: readAuthorityFile(directory, certificate),
    secretKeyPem: readAuthorityFile(directory, key, 0o077),
  };
}

/** @param forbiddenBits mode bits that must not be set */
function readAuthorityFile(directory: string, file: string, forbiddenBits = 0): string {
  const path = join(directory, file);
  if (!existsSync(path)) {
    const remedy = hasAuthorityFile(directory) ? "restore it from a copy" : "create a CA with: qsp ca init";
    throw new ConfigError(`${path} is missing; ${remedy}`);
  }
  // Windows has no mode bits; there, the file inherits the directory's access list.
  if (process.platform !== "win32" && (statSync(path).mode & forbiddenBits) !== 0)
    throw new ConfigError(`other users can read ${path}; set its mode to 0600`);
  try {
    return readFileWithin(path, maxSmallFileBytes).toString();
  } catch (error) {
    throw new ConfigError(`${path} cannot be read: ${describeSystemError(error)}`);
  }
}
