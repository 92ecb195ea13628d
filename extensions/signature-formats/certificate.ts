/** Reads the X.509 certificates (RFC 5280) that identify a CMS signer. */
import type { X509Certificate } from "node:crypto";
import { Certificate, IssuerAndSerialNumber } from "pkijs";
import { readSubjectKeyIdentifier } from "../../src/crypto/certificate-parts.ts";
import { exportPublicKey, readSigningCertificates } from "../../src/crypto/signing-certificates.ts";
import type { CmsSignerName } from "./cms-signature.ts";

/** A certificate whose key may sign content. Issuer, validity and revocation are not checked. */
export interface SignerCertificate {
  readonly der: Uint8Array;
  /** SubjectPublicKeyInfo in PEM. */
  readonly publicKeyPem: string;
  /** DER of issuer and serial number, which identify a certificate in CMS. */
  readonly issuerAndSerialNumber: Uint8Array;
  /** From the extension; undefined if it is absent. */
  readonly keyIdentifier: Uint8Array | undefined;
}

/**
 * Reads PEM certificates: the signer's first, then its CAs'.
 *
 * @param origin the file name for error messages
 * @throws CryptoError as readSigningCertificates and exportPublicKey do
 */
export function readCertificates(pem: string, origin: string): [SignerCertificate, ...Uint8Array[]] {
  const [first, ...others] = readSigningCertificates(pem, origin);
  return [describeSigner(first, origin), ...others.map(({ raw }) => Uint8Array.from(raw))];
}

/** Whether a CMS message identifies this certificate as its signer. */
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
