/**
 * Parses certificates and their keys before OpenSSL does. OpenSSL would silently skip a block with a damaged
 * BEGIN line and trust or show the next one.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { wipe } from "./bytes.ts";
import { type CryptoError, invalidKey } from "./crypto-error.ts";
import {
  decodePemBlock,
  describePemBlocks,
  findCertificateBlocks,
  findPemBlocks,
  type PemBlock,
} from "./pem.ts";

/** Maximum size of a certificate file, in characters. A bundle of all public CAs has about 220,000. */
const maxCertificatesCharacters = 1024 * 1024;

/**
 * Reads all certificates in a PEM text, in order. Skips other blocks, such as the key next to a certificate.
 *
 * @throws INVALID_KEY if the text has no certificate or an unreadable one, with the line and the remedy
 */
export function readCertificates(
  pem: string,
  maxCharacters = maxCertificatesCharacters,
): [X509Certificate, ...X509Certificate[]] {
  const [first, ...others] = findCertificateBlocks(pem, maxCharacters).map(readCertificate);
  if (first !== undefined) return [first, ...others];
  throw missing(
    "certificate",
    "-----BEGIN CERTIFICATE-----",
    "openssl x509",
    findPemBlocks(pem, maxCharacters),
  );
}

function readCertificate(block: PemBlock): X509Certificate {
  const der = decodePemBlock(block);
  try {
    const certificate = new X509Certificate(der);
    // OpenSSL ignores trailing bytes after a certificate.
    if (certificate.raw.length === der.length) return certificate;
  } catch {}
  throw invalidKey(
    `the ${block.label} in line ${block.line} is not an X.509 certificate; export it again as PEM`,
  );
}

/** DER forms by PEM label: RFC 5958, RFC 8017 (appendix A.1.2) and RFC 5915. */
const privateKeyForms = {
  "PRIVATE KEY": "pkcs8",
  "RSA PRIVATE KEY": "pkcs1",
  "EC PRIVATE KEY": "sec1",
} as const;

/**
 * Reads the only private key in a PEM text, for any algorithm that OpenSSL supports. Skips other blocks, such
 * as the certificate.
 *
 * @throws INVALID_KEY if the text has no key, several keys or an unreadable one, with the line and the remedy
 */
export function readPrivateKey(pem: string): KeyObject {
  const blocks = findPemBlocks(pem, maxCertificatesCharacters);
  const [block, ...others] = blocks.filter(({ label }) => label.endsWith("PRIVATE KEY"));
  if (block === undefined)
    throw missing("private key", "-----BEGIN PRIVATE KEY-----", "openssl pkey", blocks);
  if (others.length > 0)
    throw invalidKey(`${describePemBlocks([block, ...others])}; expected one private key`);
  const der = decodePemBlock(block);
  try {
    const form = Object.entries(privateKeyForms).find(([label]) => label === block.label);
    if (form !== undefined)
      return createPrivateKey({ key: Buffer.from(der.buffer), format: "der", type: form[1] });
  } catch {
    // OpenSSL's own message would not help the caller.
  } finally {
    wipe(der);
  }
  throw invalidKey(
    `the ${block.label} in line ${block.line} is not a private key that OpenSSL can read; convert it with openssl pkey -in FILE -out NEW`,
  );
}

function missing(what: string, begin: string, command: string, blocks: readonly PemBlock[]): CryptoError {
  return invalidKey(
    blocks.length > 0
      ? `${describePemBlocks(blocks)}, and no ${what}, which begins with ${begin}`
      : `no ${what} in PEM, which begins with ${begin}; convert DER with ${command} -in FILE -out NEW`,
  );
}
