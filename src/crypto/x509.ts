/**
 * Certificates of a private CA (RFC 5280): ECDSA-P256 (RFC 5480 and 5758), which clients accept today, and
 * ML-DSA-65 (RFC 9881). pkijs writes the ASN.1; node:crypto generates the keys and the signatures.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIP } from "node:net";
import { BitString, Integer, OctetString, Utf8String } from "asn1js";
import {
  AlgorithmIdentifier,
  AltName,
  AttributeTypeAndValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  Extension,
  ExtKeyUsage,
  GeneralName,
  PublicKeyInfo,
  RelativeDistinguishedNames,
  Time,
} from "pkijs";
import { CryptoError } from "./crypto-error.ts";
import { encodePem } from "./pem.ts";

/** The algorithm of a certificate's key, and of its CA's key. */
export type CertificateAlgorithm = "ECDSA-P256" | "ML-DSA-65";

/** A certificate and its key, each in PEM; the key is PKCS#8, and secret. */
export interface CertificateAndKey {
  readonly certificatePem: string;
  readonly secretKeyPem: string;
}

/** A CA whose certificate and key belong together. */
export interface Authority {
  readonly certificate: X509Certificate;
  readonly algorithm: CertificateAlgorithm;
  readonly secretKey: KeyObject;
}

/** The names in a server certificate, and its lifetime. */
export interface ServerCertificateInput {
  /**
   * At least one host name, `*.` and a host name, or IP address. All are in subjectAltName, and the first is the
   * subject. The caller has checked them.
   */
  readonly names: readonly string[];
  /** Days from now until it expires; it expires with its CA if that is sooner. */
  readonly days: number;
  readonly now: Date;
}

/** The lifetime of a CA in years. */
const authorityYears = 10;
/** A certificate is valid from a little earlier than now, because clients' clocks may be behind. */
const backdatedMs = 10 * 60 * 1000;
const dayMs = 24 * 60 * 60 * 1000;
/** RFC 5280, section 4.1.2.2: at most 20 bytes; 128 random bits do not repeat in practice. */
const serialNumberBytes = 16;
/** RFC 7093, section 2, method 1. */
const keyIdentifierBytes = 20;

/** Object identifiers of RFC 5280. */
const oids = {
  commonName: "2.5.4.3",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
} as const;

/** Tags of GeneralName (RFC 5280, section 4.2.1.6). */
const generalNames = { dnsName: 2, ipAddress: 7 } as const;

/** The bits of KeyUsage, from the left, and the number of unused bits in the byte (RFC 5280, section 4.2.1.3). */
const keyUsages = {
  authority: { bits: 0b0000_0110, unusedBits: 1 }, // keyCertSign, cRLSign
  server: { bits: 0b1000_0000, unusedBits: 7 }, // digitalSignature
} as const;

/** How each kind signs. Neither AlgorithmIdentifier has parameters (RFC 5758, section 3.2; RFC 9881, section 2). */
const kinds: Readonly<Record<CertificateAlgorithm, CertificateKind>> = {
  "ECDSA-P256": {
    signatureOid: "1.2.840.10045.4.3.2", // ecdsa-with-SHA256
    digest: "sha256",
    generate: () => generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey,
    isKey: (key) => key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1",
  },
  "ML-DSA-65": {
    signatureOid: "2.16.840.1.101.3.4.3.18",
    digest: null,
    generate: () => generateKeyPairSync("ml-dsa-65").privateKey,
    isKey: (key) => key.asymmetricKeyType === "ml-dsa-65",
  },
};

interface CertificateKind {
  readonly signatureOid: string;
  /** The hash of the message to sign; null if the algorithm takes the message itself. */
  readonly digest: "sha256" | null;
  generate(): KeyObject;
  isKey(key: KeyObject): boolean;
}

/** Creates a self-signed CA that may sign server certificates but no further CA. It is valid for ten years. */
export function createAuthority(algorithm: CertificateAlgorithm, now: Date): CertificateAndKey {
  const secretKey = kinds[algorithm].generate();
  const subjectPublicKey = exportPublicKeyInfo(secretKey);
  const keyIdentifier = computeKeyIdentifier(subjectPublicKey);
  const end = new Date(now);
  end.setUTCFullYear(end.getUTCFullYear() + authorityYears);
  // The name includes part of the key identifier, so that a client can trust two of our CAs.
  const subject = toDistinguishedName(
    `Quantum-Safe Playground CA ${algorithm} ${keyIdentifier.toHex().slice(0, 8)}`,
  );
  const certificate = signCertificate({
    subject,
    issuer: subject,
    subjectPublicKey,
    validity: [new Date(now.getTime() - backdatedMs), end],
    extensions: [
      extension(
        "basicConstraints",
        true,
        new BasicConstraints({ cA: true, pathLenConstraint: 0 }).toSchema(),
      ),
      keyUsage("authority"),
      extension("subjectKeyIdentifier", false, new OctetString({ valueHex: keyIdentifier })),
    ],
    algorithm,
    signingKey: secretKey,
  });
  return toPem(certificate, secretKey);
}

/**
 * Reads a CA.
 *
 * @throws INVALID_KEY if it is not a CA that we created, or its certificate and its key do not match
 */
export function openAuthority({ certificatePem, secretKeyPem }: CertificateAndKey): Authority {
  const certificate = readOr(
    "the CA certificate is not a certificate in PEM",
    () => new X509Certificate(certificatePem),
  );
  const secretKey = readOr("the CA key is not a private key in PEM", () => createPrivateKey(secretKeyPem));
  const algorithm = (["ECDSA-P256", "ML-DSA-65"] as const).find((name) => kinds[name].isKey(secretKey));
  if (algorithm === undefined)
    throw new CryptoError("INVALID_KEY", "the CA key is neither an ECDSA-P256 nor an ML-DSA-65 key");
  if (!certificate.checkPrivateKey(secretKey))
    throw new CryptoError("INVALID_KEY", `the CA key does not match ${nameOfSubject(certificate)}`);
  if (!certificate.ca || readSubjectKeyIdentifier(certificate) === undefined)
    throw new CryptoError(
      "INVALID_KEY",
      `${nameOfSubject(certificate)} is not a CA, or does not identify a key`,
    );
  return { certificate, algorithm, secretKey };
}

/**
 * Generates a key of the CA's algorithm and a certificate for a server. It allows only serverAuth: with clientAuth, a
 * stolen server key could also impersonate a client.
 *
 * @throws INVALID_ARGUMENT if the CA has expired or is not yet valid
 */
export function issueServerCertificate(
  { certificate: ca, algorithm, secretKey: signingKey }: Authority,
  { names, days, now }: ServerCertificateInput,
): CertificateAndKey {
  if (now >= ca.validToDate)
    throw new CryptoError(
      "INVALID_ARGUMENT",
      `the CA ${nameOfSubject(ca)} expired on ${ca.validToDate.toISOString()}; create a new one`,
    );
  if (now < ca.validFromDate) {
    const begin = ca.validFromDate.toISOString();
    throw new CryptoError(
      "INVALID_ARGUMENT",
      `the CA ${nameOfSubject(ca)} is valid from ${begin}; check the clock`,
    );
  }
  const secretKey = kinds[algorithm].generate();
  const subjectPublicKey = exportPublicKeyInfo(secretKey);
  const keyIdentifier = new OctetString({ valueHex: computeKeyIdentifier(subjectPublicKey) });
  const authorityKeyIdentifier = new OctetString({
    valueHex: readSubjectKeyIdentifier(ca) ?? new Uint8Array(),
  });
  const altNames = names.map(toGeneralName);
  const end = Math.min(now.getTime() + days * dayMs, ca.validToDate.getTime());
  const certificate = signCertificate({
    subject: toDistinguishedName(names[0] ?? ""),
    issuer: Certificate.fromBER(ca.raw).subject,
    subjectPublicKey,
    validity: [new Date(now.getTime() - backdatedMs), new Date(end)],
    extensions: [
      extension("basicConstraints", true, new BasicConstraints().toSchema()),
      keyUsage("server"),
      extension("extKeyUsage", false, new ExtKeyUsage({ keyPurposes: [oids.serverAuth] }).toSchema()),
      extension("subjectAltName", false, new AltName({ altNames }).toSchema()),
      extension("subjectKeyIdentifier", false, keyIdentifier),
      extension(
        "authorityKeyIdentifier",
        false,
        new AuthorityKeyIdentifier({ keyIdentifier: authorityKeyIdentifier }).toSchema(),
      ),
    ],
    algorithm,
    signingKey,
  });
  return toPem(certificate, secretKey);
}

interface CertificateContent {
  readonly subject: RelativeDistinguishedNames;
  readonly issuer: RelativeDistinguishedNames;
  readonly subjectPublicKey: PublicKeyInfo;
  /** First and last moment. */
  readonly validity: readonly [Date, Date];
  readonly extensions: Extension[];
  readonly algorithm: CertificateAlgorithm;
  readonly signingKey: KeyObject;
}

function signCertificate({ validity, algorithm, signingKey, ...content }: CertificateContent): Uint8Array {
  const { signatureOid, digest } = kinds[algorithm];
  const certificate = new Certificate();
  certificate.version = 2; // Which says v3 (RFC 5280, section 4.1.2.1).
  certificate.serialNumber = Integer.fromBigInt(BigInt(`0x${randomBytes(serialNumberBytes).toHex()}`));
  certificate.issuer = content.issuer;
  certificate.subject = content.subject;
  certificate.notBefore = toTime(validity[0]);
  certificate.notAfter = toTime(validity[1]);
  certificate.subjectPublicKeyInfo = content.subjectPublicKey;
  certificate.extensions = content.extensions;
  certificate.signature = new AlgorithmIdentifier({ algorithmId: signatureOid });
  certificate.signatureAlgorithm = new AlgorithmIdentifier({ algorithmId: signatureOid });
  const toBeSigned = new Uint8Array(certificate.encodeTBS().toBER());
  certificate.signatureValue = new BitString({ valueHex: sign(digest, toBeSigned, signingKey) });
  return new Uint8Array(certificate.toSchema(true).toBER());
}

function toPem(certificate: Uint8Array, secretKey: KeyObject): CertificateAndKey {
  return {
    certificatePem: encodePem("CERTIFICATE", certificate),
    secretKeyPem: String(secretKey.export({ type: "pkcs8", format: "pem" })),
  };
}

function toDistinguishedName(commonName: string): RelativeDistinguishedNames {
  const value = new Utf8String({ value: commonName });
  return new RelativeDistinguishedNames({
    typesAndValues: [new AttributeTypeAndValue({ type: oids.commonName, value })],
  });
}

function toGeneralName(name: string): GeneralName {
  if (isIP(name) === 0) return new GeneralName({ type: generalNames.dnsName, value: name });
  const value = new OctetString({ valueHex: toAddressBytes(name) });
  return new GeneralName({ type: generalNames.ipAddress, value });
}

/** Returns the subject on one line, for messages. */
function nameOfSubject({ subject }: X509Certificate): string {
  return (subject ?? "").replaceAll("\n", ", ");
}

/** @returns 4 or 16 bytes */
function toAddressBytes(address: string): Uint8Array {
  if (isIP(address) === 4) return Uint8Array.from(address.split("."), Number);
  // In a URL, an IPv6 address consists of hexadecimal groups, with "::" for zeros at most once.
  const [head = "", tail = ""] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const [first, last] = [head, tail].map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(8 - (first?.length ?? 0) - (last?.length ?? 0)).fill("0");
  const groups = [...(first ?? []), ...zeros, ...(last ?? [])];
  return Uint8Array.fromHex(groups.map((group) => group.padStart(4, "0")).join(""));
}

/** UTCTime up to 2049, GeneralizedTime from then on (RFC 5280, section 4.1.2.5). */
function toTime(date: Date): Time {
  return new Time({ type: date.getUTCFullYear() < 2050 ? 0 : 1, value: date });
}

function extension(name: keyof typeof oids, critical: boolean, value: { toBER(): ArrayBuffer }): Extension {
  return new Extension({ extnID: oids[name], critical, extnValue: value.toBER() });
}

function keyUsage(of: keyof typeof keyUsages): Extension {
  const { bits, unusedBits } = keyUsages[of];
  return extension("keyUsage", true, new BitString({ valueHex: Uint8Array.of(bits), unusedBits }));
}

function exportPublicKeyInfo(secretKey: KeyObject): PublicKeyInfo {
  return PublicKeyInfo.fromBER(createPublicKey(secretKey).export({ type: "spki", format: "der" }));
}

function computeKeyIdentifier({ subjectPublicKey }: PublicKeyInfo): Uint8Array {
  const digest = createHash("sha256").update(subjectPublicKey.valueBlock.valueHexView).digest();
  return digest.subarray(0, keyIdentifierBytes);
}

function readSubjectKeyIdentifier(certificate: X509Certificate): Uint8Array | undefined {
  const { extensions = [] } = Certificate.fromBER(certificate.raw);
  const value: unknown = extensions.find(({ extnID }) => extnID === oids.subjectKeyIdentifier)?.parsedValue;
  return value instanceof OctetString ? value.valueBlock.valueHexView : undefined;
}

function readOr<T>(problem: string, read: () => T): T {
  try {
    return read();
  } catch {
    // OpenSSL's own message would not help the caller.
    throw new CryptoError("INVALID_KEY", problem);
  }
}
