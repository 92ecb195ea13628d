/**
 * Reads X.509 certificates (RFC 5280) whose keys sign content. Does not check issuers, lifetimes or
 * revocation.
 */
import type { X509Certificate } from "node:crypto";
import { BitString } from "asn1js";
import { Certificate } from "pkijs";
import { readCertificates } from "./certificate-files.ts";
import { findExtension } from "./certificate-parts.ts";
import { explain, invalidKey } from "./crypto-error.ts";
import { findPublicKeyAlgorithm } from "./key-encoding.ts";
import { encodePem } from "./pem.ts";

/** Maximum certificates in a file. */
const maxCertificates = 10;

/** digitalSignature and nonRepudiation, the first bits of KeyUsage (RFC 5280, section 4.2.1.3). */
const signingBits = 0b1100_0000;

/**
 * Reads certificates in PEM: the signer's certificate first, then its CAs' certificates.
 *
 * @param origin the file name for error messages
 * @throws INVALID_KEY if the file has no certificate, too many certificates or an unreadable block, or if the
 *   first certificate may not sign content
 */
export function readSigningCertificates(
  pem: string,
  origin: string,
): [X509Certificate, ...X509Certificate[]] {
  const certificates = explain(origin, () => readCertificates(pem));
  if (certificates.length > maxCertificates)
    throw invalidKey(`${origin} contains more than ${maxCertificates} certificates`);
  const usage = findExtension(Certificate.fromBER(certificates[0].raw), "keyUsage");
  if (usage instanceof BitString && ((usage.valueBlock.valueHexView[0] ?? 0) & signingBits) === 0)
    throw invalidKey(
      `the certificate in ${origin} may not sign content: its key usage has no digitalSignature`,
    );
  return certificates;
}

/**
 * Exports a certificate's key as SubjectPublicKeyInfo in PEM.
 *
 * @throws INVALID_KEY for a key that neither OpenSSL nor `findPublicKeyAlgorithm` can read
 */
export function exportPublicKey(certificate: X509Certificate, origin: string): string {
  try {
    return String(certificate.publicKey.export({ type: "spki", format: "pem" }));
  } catch {
    // OpenSSL has no composites.
    const { subjectPublicKeyInfo } = Certificate.fromBER(certificate.raw);
    const der = new Uint8Array(subjectPublicKeyInfo.toSchema().toBER());
    if (findPublicKeyAlgorithm(der) !== undefined) return encodePem("PUBLIC KEY", der);
    throw invalidKey(`the certificate in ${origin} has a key of an unsupported algorithm`);
  }
}
