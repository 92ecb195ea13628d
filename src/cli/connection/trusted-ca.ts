/** The CA that the client trusts for https, in addition to the Node.js defaults. */
import { readCertificates } from "../../crypto/certificate-files.ts";
import type { ParsedOptions } from "../command-line/options.ts";
import { explainKey, maxWholeBytes, readText } from "../files/read.ts";
import { findLogin } from "./logins.ts";

/** CA certificates and their origin. */
interface TrustedCa {
  /** One or more certificates in PEM, and nothing else. */
  readonly pem: string;
  /** "--ca FILE", "QSP_CA (FILE)" or "qsp login". */
  readonly source: string;
}

/**
 * Reads the CA from --ca, QSP_CA, or the login to this server.
 *
 * @throws CliError for a file without certificates
 */
export function readTrustedCa(options: ParsedOptions, url: string): TrustedCa | undefined {
  const file = options.text("ca");
  if (file !== undefined) return readCa(file, `--ca ${file}`);
  const fromVariable = process.env.QSP_CA;
  if (fromVariable) return readCa(fromVariable, `QSP_CA (${fromVariable})`);
  const pem = url.startsWith("https:") ? findLogin(url)?.ca : undefined;
  return pem === undefined ? undefined : { pem, source: "qsp login" };
}

function readCa(file: string, source: string): TrustedCa {
  // Keep only the certificates: the file may also contain a key.
  const certificates = explainKey(source, () => readCertificates(readText(file), maxWholeBytes));
  return { pem: certificates.join(""), source };
}
