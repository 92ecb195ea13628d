/** Reads the X.509 certificates (RFC 5280) that name the signer of a CMS message. */
import type { X509Certificate } from "node:crypto";
import { Certificate, IssuerAndSerialNumber } from "pkijs";
import { readSubjectKeyIdentifier } from "../../src/crypto/certificate-parts.ts";
import { exportPublicKey, readSigningCertificates } from "../../src/crypto/signing-certificates.ts";
import type { CmsSignerName } from "./cms-signature.ts";

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

/**
 * Reads certificates in PEM: the signer's first, then those of its CAs.
 *
 * @param origin names the file in an error
 * @throws CryptoError as readSigningCertificates and exportPublicKey do
 */
export function readCertificates(pem: string, origin: string): [SignerCertificate, ...Uint8Array[]] {
  const [first, ...others] = readSigningCertificates(pem, origin);
  return [describeSigner(first, origin), ...others.map(({ raw }) => Uint8Array.from(raw))];
}

/** Tells whether a CMS message names this certificate. */
export function isNamed(certificate: SignerCertificate, name: CmsSignerName): boolean {
  const { issuerAndSerialNumber, keyIdentifier } = certificate;
  if ("issuerAndSerialNumber" in name)
    return Buffer.compare(issuerAndSerialNumber, name.issuerAndSerialNumber) === 0;
  return keyIdentifier !== undefined && Buffer.compare(keyIdentifier, name.keyIdentifier) === 0;
}

function describeSigner(parsed: X509Certificate, origin: string): SignerCertificate {
  const certificate = Certificate.fromBER(parsed.raw);
  const { issuer, serialNumber } = certificate;
  return {
    der: Uint8Array.from(parsed.raw),
    publicKeyPem: exportPublicKey(parsed, origin),
    issuerAndSerialNumber: new Uint8Array(
      new IssuerAndSerialNumber({ issuer, serialNumber }).toSchema().toBER(),
    ),
    keyIdentifier: readSubjectKeyIdentifier(certificate),
  };
}
