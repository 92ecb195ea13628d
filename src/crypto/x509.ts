/**
 * Certificates of a private CA (RFC 5280): ECDSA-P256 (RFC 5480 and 5758), which clients accept today, and
 * ML-DSA-65 (RFC 9881). node:crypto generates the keys and the signatures.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, type X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { OctetString } from "asn1js";
import { AuthorityKeyIdentifier, BasicConstraints, Certificate, ExtKeyUsage, PublicKeyInfo } from "pkijs";
import type { AlternativeName } from "./alternative-names.ts";
import { readCertificates, readPrivateKey } from "./certificate-files.ts";
import {
  backdatedMs,
  type CertificateAlgorithm,
  computeKeyIdentifier,
  createExtension,
  createKeyUsage,
  nameOfSubject,
  readSubjectKeyIdentifier,
  signCertificate,
} from "./certificate-parts.ts";
import { explain, invalidArgument, invalidKey } from "./crypto-error.ts";
import { attributeRules, type DistinguishedName } from "./distinguished-name.ts";
import { encodeAlternativeNames, encodeDistinguishedName } from "./name-encoding.ts";
import { encodePem } from "./pem.ts";

export type { CertificateAlgorithm };

/** A certificate and its key, both in PEM; the key is PKCS#8, and secret. */
export interface CertificateAndKey {
  readonly certificatePem: string;
  readonly secretKeyPem: string;
}

/** A CA with a matching certificate and key. */
export interface Authority {
  readonly certificate: X509Certificate;
  readonly algorithm: CertificateAlgorithm;
  readonly secretKey: KeyObject;
}

/** A certificate's validity period. */
interface Lifetime {
  /** Days from now until expiry; never later than the CA's expiry. */
  readonly days: number;
  readonly now: Date;
}

export interface ServerCertificateInput extends Lifetime {
  /**
   * At least one host name, `*.` and a host name, or IP address. All appear in subjectAltName; the first is
   * also the subject, unless it is too long for a common name. The caller has checked them.
   */
  readonly names: readonly string[];
}

/** The content of a certificate for a key that the server or its holder generated. */
export interface CertificateInput extends Lifetime {
  readonly subject: DistinguishedName;
  readonly alternativeNames: readonly AlternativeName[];
  /** SubjectPublicKeyInfo in DER. The caller has checked that its owner has the secret key. */
  readonly publicKey: Uint8Array;
  /** At least one. */
  readonly purposes: readonly CertificatePurpose[];
}

/** Certificate purposes: extKeyUsage (RFC 5280, section 4.2.1.12; RFC 9336 for documents). */
const certificatePurposes = {
  server: "1.3.6.1.5.5.7.3.1",
  client: "1.3.6.1.5.5.7.3.2",
  code: "1.3.6.1.5.5.7.3.3",
  email: "1.3.6.1.5.5.7.3.4",
  document: "1.3.6.1.5.5.7.3.36",
} as const;

export type CertificatePurpose = keyof typeof certificatePurposes;

/** Lifetime of a CA, in years. */
const authorityYears = 10;
const dayMs = 24 * 60 * 60 * 1000;

const generators: Readonly<Record<CertificateAlgorithm, () => KeyObject>> = {
  "ECDSA-P256": () => generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey,
  "ML-DSA-65": () => generateKeyPairSync("ml-dsa-65").privateKey,
};

/** Creates a self-signed CA that is valid for ten years. It may issue certificates but no sub-CA. */
export function createAuthority(algorithm: CertificateAlgorithm, now: Date): CertificateAndKey {
  const secretKey = generators[algorithm]();
  const subjectPublicKey = PublicKeyInfo.fromBER(exportPublicKey(secretKey));
  const keyIdentifier = computeKeyIdentifier(subjectPublicKey.subjectPublicKey.valueBlock.valueHexView);
  const end = new Date(now);
  end.setUTCFullYear(end.getUTCFullYear() + authorityYears);
  // The name includes part of the key identifier, so that a client can trust two of our CAs.
  const commonName = `Quantum-Safe Playground CA ${algorithm} ${keyIdentifier.toHex().slice(0, 8)}`;
  const subject = encodeDistinguishedName([{ type: "CN", value: commonName }]);
  const certificate = signCertificate({
    subject,
    issuer: subject,
    subjectPublicKey,
    validity: [new Date(now.getTime() - backdatedMs), end],
    extensions: [
      createExtension(
        "basicConstraints",
        true,
        new BasicConstraints({ cA: true, pathLenConstraint: 0 }).toSchema(),
      ),
      createKeyUsage("authority"),
      createExtension("subjectKeyIdentifier", false, new OctetString({ valueHex: keyIdentifier })),
    ],
    algorithm,
    signingKey: secretKey,
  });
  return toPem(certificate, secretKey);
}

/**
 * Reads a CA.
 *
 * @throws INVALID_KEY if it is not a CA that `createAuthority` created, or its certificate and key do not
 *   match
 */
export function openAuthority({ certificatePem, secretKeyPem }: CertificateAndKey): Authority {
  const [certificate] = explain("the CA certificate", () => readCertificates(certificatePem));
  const secretKey = explain("the CA key", () => readPrivateKey(secretKeyPem));
  const algorithm = findAlgorithm(secretKey);
  if (algorithm === undefined) throw invalidKey("the CA key is neither an ECDSA-P256 nor an ML-DSA-65 key");
  if (!certificate.checkPrivateKey(secretKey))
    throw invalidKey(`the CA key does not match ${nameOfSubject(certificate)}`);
  if (!certificate.ca || readSubjectKeyIdentifier(Certificate.fromBER(certificate.raw)) === undefined)
    throw invalidKey(
      `${nameOfSubject(certificate)} is not a CA certificate, or has no subject key identifier`,
    );
  return { certificate, algorithm, secretKey };
}

/**
 * Generates a key of the CA's algorithm and a server certificate for it. The certificate allows only
 * serverAuth: with clientAuth, a stolen server key could also impersonate a client.
 *
 * @throws INVALID_ARGUMENT if the CA has expired or is not yet valid
 */
export function issueServerCertificate(
  authority: Authority,
  { names, days, now }: ServerCertificateInput,
): CertificateAndKey {
  requireValid(authority, now);
  const secretKey = generators[authority.algorithm]();
  const [value = ""] = names;
  const certificate = signFor(authority, {
    subject: value.length > attributeRules.CN.maxCharacters ? [] : [{ type: "CN", value }],
    alternativeNames: names.map((value) => ({ kind: isIP(value) === 0 ? "dns" : "ip", value })),
    publicKey: exportPublicKey(secretKey),
    purposes: ["server"],
    days,
    now,
  });
  return toPem(certificate, secretKey);
}

/**
 * Issues a certificate for a key that its owner keeps. The content comes from the input alone, not from a
 * CSR: no CA, and no use besides digital signatures.
 *
 * @returns PEM
 * @throws INVALID_ARGUMENT if the CA has expired or is not yet valid
 */
export function issueCertificate(authority: Authority, input: CertificateInput): string {
  requireValid(authority, input.now);
  return encodePem("CERTIFICATE", signFor(authority, input));
}

function requireValid({ certificate: ca }: Authority, now: Date): void {
  if (now >= ca.validToDate)
    throw invalidArgument(
      `the CA ${nameOfSubject(ca)} expired on ${ca.validToDate.toISOString()}; create a new one`,
    );
  if (now < ca.validFromDate) {
    const begin = ca.validFromDate.toISOString();
    throw invalidArgument(`the CA ${nameOfSubject(ca)} is valid from ${begin}; check the clock`);
  }
}

function signFor({ certificate: ca, algorithm, secretKey }: Authority, input: CertificateInput): Uint8Array {
  const { subject, alternativeNames, publicKey, purposes, days, now } = input;
  const subjectPublicKey = PublicKeyInfo.fromBER(publicKey);
  const end = Math.min(now.getTime() + days * dayMs, ca.validToDate.getTime());
  const keyIdentifier = new OctetString({
    valueHex: computeKeyIdentifier(subjectPublicKey.subjectPublicKey.valueBlock.valueHexView),
  });
  const authorityKeyIdentifier = new OctetString({
    valueHex: readSubjectKeyIdentifier(Certificate.fromBER(ca.raw)) ?? new Uint8Array(),
  });
  const keyPurposes = purposes.map((purpose) => certificatePurposes[purpose]);
  // RFC 5280, section 4.2.1.6: critical if there is no other name.
  const isOnlyName = subject.length === 0;
  const names = encodeAlternativeNames(alternativeNames).toSchema();
  return signCertificate({
    subject: encodeDistinguishedName(subject),
    issuer: Certificate.fromBER(ca.raw).subject,
    subjectPublicKey,
    validity: [new Date(now.getTime() - backdatedMs), new Date(end)],
    extensions: [
      createExtension("basicConstraints", true, new BasicConstraints().toSchema()),
      createKeyUsage("signer"),
      createExtension("extKeyUsage", false, new ExtKeyUsage({ keyPurposes }).toSchema()),
      ...(alternativeNames.length > 0 ? [createExtension("subjectAltName", isOnlyName, names)] : []),
      createExtension("subjectKeyIdentifier", false, keyIdentifier),
      createExtension(
        "authorityKeyIdentifier",
        false,
        new AuthorityKeyIdentifier({ keyIdentifier: authorityKeyIdentifier }).toSchema(),
      ),
    ],
    algorithm,
    signingKey: secretKey,
  });
}

function toPem(certificate: Uint8Array, secretKey: KeyObject): CertificateAndKey {
  return {
    certificatePem: encodePem("CERTIFICATE", certificate),
    secretKeyPem: String(secretKey.export({ type: "pkcs8", format: "pem" })),
  };
}

function findAlgorithm({
  asymmetricKeyType,
  asymmetricKeyDetails,
}: KeyObject): CertificateAlgorithm | undefined {
  if (asymmetricKeyType === "ml-dsa-65") return "ML-DSA-65";
  return asymmetricKeyDetails?.namedCurve === "prime256v1" ? "ECDSA-P256" : undefined;
}

function exportPublicKey(secretKey: KeyObject): Uint8Array {
  return createPublicKey(secretKey).export({ type: "spki", format: "der" });
}
