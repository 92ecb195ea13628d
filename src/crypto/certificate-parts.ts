/** Building blocks of certificates from a private CA (RFC 5280). pkijs writes the ASN.1. */
import { createHash, type KeyObject, randomBytes, sign, type X509Certificate } from "node:crypto";
import { BitString, Integer, OctetString } from "asn1js";
import {
  AlgorithmIdentifier,
  Certificate,
  Extension,
  type PublicKeyInfo,
  type RelativeDistinguishedNames,
  Time,
} from "pkijs";
import { signatureAlgorithms } from "./algorithms.ts";

export type CertificateAlgorithm = "ECDSA-P256" | "ML-DSA-65";

/** A certificate before it is signed. */
export interface CertificateContent {
  readonly subject: RelativeDistinguishedNames;
  readonly issuer: RelativeDistinguishedNames;
  readonly subjectPublicKey: PublicKeyInfo;
  /** First and last valid moment. */
  readonly validity: readonly [Date, Date];
  readonly extensions: Extension[];
  readonly algorithm: CertificateAlgorithm;
  readonly signingKey: KeyObject;
}

/** Certificates are backdated because clients' clocks may be slow. */
export const backdatedMs = 10 * 60 * 1000;
/** RFC 5280, section 4.1.2.2: at most 20 bytes. 128 random bits do not repeat in practice. */
const serialNumberBytes = 16;
/** RFC 7093, section 2, method 1. */
const keyIdentifierBytes = 20;

/** Object identifiers of certificate extensions (RFC 5280, section 4.2). */
export const extensionOids = {
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extKeyUsage: "2.5.29.37",
} as const;

/** KeyUsage bits from the left, and the number of unused bits in the byte (RFC 5280, section 4.2.1.3). */
const keyUsages = {
  authority: { bits: 0b0000_0110, unusedBits: 1 }, // keyCertSign, cRLSign
  // digitalSignature. RFC 9881, section 5, and RFC 9909, section 6, forbid encryption uses for a signing key.
  signer: { bits: 0b1000_0000, unusedBits: 7 },
} as const;

/** How keys of an algorithm sign certificates and CSRs. */
export interface SignatureKind {
  readonly oid: string;
  /** Hash to sign; null if the algorithm signs the message itself. */
  readonly digest: "sha256" | null;
}

/**
 * Finds how an algorithm signs. The AlgorithmIdentifier has no parameters (RFC 5758, section 3.2; RFC 9881,
 * section 2; RFC 9909, section 3).
 */
export function findSignatureKind(algorithm: keyof typeof signatureAlgorithms): SignatureKind {
  // ECDSA keys and signatures have different identifiers; this is ecdsa-with-SHA256.
  if (algorithm === "ECDSA-P256") return { oid: "1.2.840.10045.4.3.2", digest: "sha256" };
  return { oid: signatureAlgorithms[algorithm].oid, digest: null };
}

/**
 * Signs a certificate.
 *
 * @returns DER
 */
export function signCertificate({
  validity,
  algorithm,
  signingKey,
  ...content
}: CertificateContent): Uint8Array {
  const { oid, digest } = findSignatureKind(algorithm);
  const certificate = new Certificate();
  certificate.version = 2; // v3 (RFC 5280, section 4.1.2.1).
  certificate.serialNumber = Integer.fromBigInt(BigInt(`0x${randomBytes(serialNumberBytes).toHex()}`));
  certificate.issuer = content.issuer;
  certificate.subject = content.subject;
  certificate.notBefore = toTime(validity[0]);
  certificate.notAfter = toTime(validity[1]);
  certificate.subjectPublicKeyInfo = content.subjectPublicKey;
  certificate.extensions = content.extensions;
  certificate.signature = new AlgorithmIdentifier({ algorithmId: oid });
  certificate.signatureAlgorithm = new AlgorithmIdentifier({ algorithmId: oid });
  const toBeSigned = new Uint8Array(certificate.encodeTBS().toBER());
  certificate.signatureValue = new BitString({ valueHex: sign(digest, toBeSigned, signingKey) });
  return new Uint8Array(certificate.toSchema(true).toBER());
}

/** UTCTime through 2049, GeneralizedTime from 2050 (RFC 5280, section 4.1.2.5). */
function toTime(date: Date): Time {
  return new Time({ type: date.getUTCFullYear() < 2050 ? 0 : 1, value: date });
}

export function createExtension(
  name: keyof typeof extensionOids,
  critical: boolean,
  value: { toBER(): ArrayBuffer },
): Extension {
  return new Extension({ extnID: extensionOids[name], critical, extnValue: value.toBER() });
}

export function createKeyUsage(of: keyof typeof keyUsages): Extension {
  const { bits, unusedBits } = keyUsages[of];
  return createExtension("keyUsage", true, new BitString({ valueHex: Uint8Array.of(bits), unusedBits }));
}

/** Computes a key identifier: the first 20 bytes of SHA-256 over the raw public key. */
export function computeKeyIdentifier(publicKey: Uint8Array): Uint8Array {
  return Uint8Array.from(createHash("sha256").update(publicKey).digest().subarray(0, keyIdentifierBytes));
}

/** Finds an extension's value; undefined if the certificate does not have the extension. */
export function findExtension({ extensions = [] }: Certificate, name: keyof typeof extensionOids): unknown {
  return extensions.find(({ extnID }) => extnID === extensionOids[name])?.parsedValue;
}

/** @returns undefined if the certificate has no subject key identifier */
export function readSubjectKeyIdentifier(certificate: Certificate): Uint8Array | undefined {
  const value = findExtension(certificate, "subjectKeyIdentifier");
  return value instanceof OctetString ? value.valueBlock.valueHexView : undefined;
}

/** Formats the subject on one line, for messages. */
export function nameOfSubject({ subject }: X509Certificate): string {
  return (subject ?? "").replaceAll("\n", ", ");
}
