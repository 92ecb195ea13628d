/** Reads the X.509 certificates (RFC 5280) that name the signer of a CMS message. */
import type { X509Certificate } from "node:crypto";
import { BitString } from "asn1js";
import { Certificate, IssuerAndSerialNumber } from "pkijs";
import { readCertificates as readX509Certificates } from "../../src/crypto/certificate-files.ts";
import { findExtension, readSubjectKeyIdentifier } from "../../src/crypto/certificate-parts.ts";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import type { CmsSignerName } from "./cms-signature.ts";
import { FormatError } from "./format-error.ts";

/** A certificate whose key may sign content. Its issuer, lifetime and revocation are not checked. */
export interface SignerCertificate {
  readonly der: Uint8Array;
  /** SubjectPublicKeyInfo in PEM. */
  readonly publicKeyPem: string;
  /** Issuer and serial number in DER, as CMS names a certificate. */
  readonly issuerAndSerialNumber: Uint8Array;
  /** Of the extension; undefined if there is none. */
  readonly keyIdentifier: Uint8Array | undefined;
}

/** The most certificates in a file. */
const maxCertificates = 10;

/** digitalSignature and nonRepudiation, the first bits of KeyUsage (RFC 5280, section 4.2.1.3). */
const signingBits = 0b1100_0000;

/**
 * Reads certificates in PEM: the signer's first, then those of its CAs.
 *
 * @param origin names the file in an error
 * @throws FormatError if the file has none, too many or a block that cannot be read, or the first may not sign content
 */
export function readCertificates(pem: string, origin: string): [SignerCertificate, ...Uint8Array[]] {
  const [first, ...others] = read(pem, origin);
  if (others.length >= maxCertificates)
    throw new FormatError(`${origin} contains more than ${maxCertificates} certificates`);
  return [describeSigner(first, origin), ...others.map(({ raw }) => Uint8Array.from(raw))];
}

/** Tells whether a CMS message names this certificate. */
export function isNamed(certificate: SignerCertificate, name: CmsSignerName): boolean {
  const { issuerAndSerialNumber, keyIdentifier } = certificate;
  if ("issuerAndSerialNumber" in name)
    return Buffer.compare(issuerAndSerialNumber, name.issuerAndSerialNumber) === 0;
  return keyIdentifier !== undefined && Buffer.compare(keyIdentifier, name.keyIdentifier) === 0;
}

function read(pem: string, origin: string): [X509Certificate, ...X509Certificate[]] {
  try {
    return readX509Certificates(pem);
  } catch (error) {
    throw error instanceof CryptoError ? new FormatError(`${origin}: ${error.message}`) : error;
  }
}

/** @throws FormatError for a key that OpenSSL cannot read, such as one of several algorithms or of a draft */
function exportPublicKey(certificate: X509Certificate, origin: string): string {
  try {
    return String(certificate.publicKey.export({ type: "spki", format: "pem" }));
  } catch {
    throw new FormatError(`the certificate of ${origin} has a key of an algorithm that is not supported`);
  }
}

function describeSigner(parsed: X509Certificate, origin: string): SignerCertificate {
  const { raw } = parsed;
  const certificate = Certificate.fromBER(raw);
  const { issuer, serialNumber } = certificate;
  const usage = findExtension(certificate, "keyUsage");
  if (usage instanceof BitString && ((usage.valueBlock.valueHexView[0] ?? 0) & signingBits) === 0)
    throw new FormatError(
      `the certificate of ${origin} may not sign content: its key usage has no digitalSignature`,
    );
  return {
    der: Uint8Array.from(raw),
    publicKeyPem: exportPublicKey(parsed, origin),
    issuerAndSerialNumber: new Uint8Array(
      new IssuerAndSerialNumber({ issuer, serialNumber }).toSchema().toBER(),
    ),
    keyIdentifier: readSubjectKeyIdentifier(certificate),
  };
}
