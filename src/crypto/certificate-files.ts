/**
 * Reads certificates and their keys before OpenSSL does: it skips a block whose BEGIN line is damaged, and trusts or
 * shows the next one.
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

/** The longest file of certificates, in characters: a bundle of all public CAs has about 220,000. */
export const maxCertificatesCharacters = 1024 * 1024;

/**
 * Reads the certificates of a PEM text, in their order. Blocks of other kinds, such as the key beside a certificate,
 * are skipped.
 *
 * @throws INVALID_KEY if there is none, or for a block that cannot be read; it names the line and the remedy
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
    // OpenSSL ignores what follows a certificate.
    if (certificate.raw.length === der.length) return certificate;
  } catch {}
  throw invalidKey(
    `the ${block.label} in line ${block.line} is not an X.509 certificate; export it again as PEM`,
  );
}

/** The forms of DER by label: RFC 5958, RFC 8017 (appendix A.1.2) and RFC 5915. */
const privateKeyForms = {
  "PRIVATE KEY": "pkcs8",
  "RSA PRIVATE KEY": "pkcs1",
  "EC PRIVATE KEY": "sec1",
} as const;

/**
 * Reads the one private key of a PEM text, of any algorithm that OpenSSL knows. Blocks of other kinds, such as its
 * certificate, are skipped.
 *
 * @throws INVALID_KEY if there is none, or more than one, or if it cannot be read; it names the line and the remedy
 */
export function readPrivateKey(pem: string, maxCharacters = maxCertificatesCharacters): KeyObject {
  const blocks = findPemBlocks(pem, maxCharacters);
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
    `the ${block.label} in line ${block.line} is not a private key that OpenSSL reads; convert it with openssl pkey -in FILE -out NEW`,
  );
}

function missing(what: string, begin: string, command: string, blocks: readonly PemBlock[]): CryptoError {
  return invalidKey(
    blocks.length > 0
      ? `${describePemBlocks(blocks)}, and no ${what}, which begins with ${begin}`
      : `no ${what} in PEM, which begins with ${begin}; convert DER with ${command} -in FILE -out NEW`,
  );
}
