/** The CA that the client trusts for https, besides those of Node.js. */
import { X509Certificate } from "node:crypto";
import { CryptoError } from "../crypto/crypto-error.ts";
import { decodeCertificates, encodePem } from "../crypto/pem.ts";
import { findLogin } from "./credentials.ts";
import { usageError } from "./exit-codes.ts";
import { maxWholeBytes, readText } from "./files.ts";
import type { ParsedOptions } from "./options.ts";

/** Certificates, and where they come from. */
export interface TrustedCa {
  /** One or more certificates in PEM, and nothing else. */
  readonly pem: string;
  /** "--ca FILE", "QSP_CA (FILE)" or "qsp login". */
  readonly source: string;
}

/** Reads the CA of --ca, of QSP_CA, or of the log-in to this server. @throws CliError for a file without certificates */
export function readTrustedCa(options: ParsedOptions, url: string): TrustedCa | undefined {
  const file = options.text("ca");
  if (file !== undefined) return readCa(file, `--ca ${file}`);
  const fromVariable = process.env.QSP_CA;
  if (fromVariable) return readCa(fromVariable, `QSP_CA (${fromVariable})`);
  const pem = url.startsWith("https:") ? findLogin(url)?.ca : undefined;
  return pem === undefined ? undefined : { pem, source: "qsp login" };
}

function readCa(file: string, source: string): TrustedCa {
  // Only the certificates are kept: the file may have a key beside them.
  const certificates = explain(source, () => decodeCertificates(readText(file), maxWholeBytes));
  if (certificates.length === 0)
    throw usageError(`${source} has no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----`);
  for (const der of certificates) requireCertificate(der, source);
  return { pem: certificates.map((der) => encodePem("CERTIFICATE", der)).join(""), source };
}

function explain<T>(source: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof CryptoError
      ? usageError(`${source} has a certificate that cannot be read: ${error.message}`)
      : error;
  }
}

function requireCertificate(der: Uint8Array, source: string): void {
  try {
    new X509Certificate(der);
  } catch {
    throw usageError(`${source} has a certificate that cannot be read; export it again as PEM`);
  }
}
