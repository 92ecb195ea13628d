/**
 * Parses CSRs from untrusted senders (PKCS#10, RFC 2986). Checks the encoding, the names and the signature,
 * which proves that the sender has the secret key. pkijs parses what `requireDer` has accepted.
 */
import { type BaseBlock, fromBER } from "asn1js";
import { type Attribute, CertificationRequest, type Extension, Extensions } from "pkijs";
import { isSignatureAlgorithm, type SignatureAlgorithm } from "../../src/crypto/algorithms.ts";
import type { AlternativeName } from "../../src/crypto/alternative-names.ts";
import { extensionOids, findSignatureKind } from "../../src/crypto/certificate-parts.ts";
import { extensionRequestOid } from "../../src/crypto/certificate-request.ts";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import { element, objectIdentifier, renderShape, tag } from "../../src/crypto/der.ts";
import type { DistinguishedName } from "../../src/crypto/distinguished-name.ts";
import { findPublicKeyAlgorithm } from "../../src/crypto/key-encoding.ts";
import { decodePem, encodePem, isPem } from "../../src/crypto/pem.ts";
import type { CryptoProvider, PublicKey } from "../../src/crypto/provider.ts";
import { requireDer } from "../../src/crypto/strict-der.ts";
import { childrenOf, decodeAlternativeNames, decodeDistinguishedName } from "./decode-names.ts";

/** A CSR whose signature verifies. */
export interface CertificateRequest {
  readonly subject: DistinguishedName;
  readonly alternativeNames: readonly AlternativeName[];
  readonly algorithm: SignatureAlgorithm;
  /** SubjectPublicKeyInfo in DER. */
  readonly publicKey: Uint8Array;
  /**
   * Object identifiers of everything else requested: extensions other than subjectAltName, and attributes.
   */
  readonly otherWishes: readonly string[];
}

/** Maximum CSR size in bytes: fits 100 names of 2,048 characters and an SLH-DSA signature of 49,856 bytes. */
const maxRequestBytes = 320 * 1024;
/** Maximum file size in bytes: base64 in lines, surrounded by white space. */
export const maxRequestFileBytes = 512 * 1024;

const maxAttributes = 16;
const maxExtensions = 32;

/**
 * @throws INVALID_ARGUMENT or INVALID_KEY: non-strict encoding, an unsupported algorithm, duplicate
 *   attributes or extensions, names that break a rule, or a signature that does not verify
 */
export async function readCertificateRequest(
  provider: CryptoProvider,
  file: Uint8Array,
): Promise<CertificateRequest> {
  const der = decodeFile(file);
  if (der.length > maxRequestBytes)
    throw invalid(`the request has ${der.length} bytes; the limit is ${maxRequestBytes}`);
  requireDer("the request", der);
  const request = parse(der);
  if (request.version !== 0)
    throw invalid("the request has an unknown version; PKCS#10 defines only version 0");
  const { algorithm, publicKey } = readKey(request);
  await checkSignature(provider, request, algorithm, publicKey);
  return {
    subject: decodeDistinguishedName(request.subject.valueBeforeDecode),
    algorithm,
    publicKey,
    ...readWishes(request),
  };
}

function decodeFile(file: Uint8Array): Uint8Array {
  if (file.length > maxRequestFileBytes)
    throw invalid(`the file has ${file.length} bytes; the limit is ${maxRequestFileBytes}`);
  if (file[0] === tag.sequence && !isPem(file)) return file;
  return decodePem(requestLabels, new TextDecoder().decode(file), maxRequestFileBytes);
}

/** RFC 7468, section 7: the second is an older label, which Java's keytool writes. */
const requestLabels = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"] as const;

function parse(der: Uint8Array): CertificationRequest {
  const { request, written } = parseOr("the file is not a PKCS#10 request (RFC 2986)", () => {
    const request = CertificationRequest.fromBER(der);
    request.attributes ??= [];
    return { request, written: new Uint8Array(request.toSchema(true).toBER()) };
  });
  // pkijs skips elements that are not in its schema. In strict DER, equal bytes show that it read all of
  // them.
  if (Buffer.compare(written, der) !== 0)
    throw invalid(
      "the request has elements that PKCS#10 (RFC 2986) does not define, or encodes a default value",
    );
  return request;
}

/** Reads the key exactly as the CSR encodes it. */
function readKey({ tbsView }: CertificationRequest): Pick<CertificateRequest, "algorithm" | "publicKey"> {
  const [, , key] = childrenOf(fromBER(tbsView).result);
  const publicKey = key?.valueBeforeDecodeView ?? new Uint8Array();
  const algorithm = findPublicKeyAlgorithm(publicKey);
  if (algorithm === undefined || !isSignatureAlgorithm(algorithm))
    throw invalid(
      "the requester's key is not an ML-DSA, SLH-DSA or ECDSA-P256 key encoded as in RFC 9881, 9909 or 5480, or a composite key of draft-ietf-lamps-pq-composite-sigs-19",
    );
  return { algorithm, publicKey };
}

async function checkSignature(
  provider: CryptoProvider,
  request: CertificationRequest,
  algorithm: SignatureAlgorithm,
  publicKey: Uint8Array,
): Promise<void> {
  const { oid } = findSignatureKind(algorithm);
  const expected = renderShape(element(tag.sequence, ...objectIdentifier(oid)), {});
  const written = new Uint8Array(request.signatureAlgorithm.toSchema().toBER());
  if (Buffer.compare(written, expected) !== 0)
    throw invalid(
      `the request has an ${algorithm} key, but its signature has a different algorithm, or one with parameters`,
    );
  const { unusedBits, valueHexView } = request.signatureValue.valueBlock;
  const pem = encodePem("PUBLIC KEY", publicKey);
  const key: PublicKey = parseOr("the requester's key is not a point on its curve", () =>
    provider.importPublicKey(algorithm, { pem }),
  );
  if (unusedBits !== 0 || !(await provider.verify(key, request.tbsView, valueHexView)))
    throw invalid(
      "the request's signature does not verify: the sender does not have the key, or the request was changed",
    );
}

/** Reads what is requested besides the subject. */
function readWishes({
  attributes = [],
}: CertificationRequest): Pick<CertificateRequest, "alternativeNames" | "otherWishes"> {
  requireUnique(
    "attribute",
    attributes.map(({ type }) => type),
    maxAttributes,
  );
  const extensions = readExtensions(attributes.find(({ type }) => type === extensionRequestOid));
  requireUnique(
    "extension",
    extensions.map(({ extnID }) => extnID),
    maxExtensions,
  );
  const names = extensions.find(({ extnID }) => extnID === extensionOids.subjectAltName);
  return {
    alternativeNames: names === undefined ? [] : readNames(names.extnValue.valueBlock.valueHexView),
    otherWishes: [
      ...extensions.map(({ extnID }) => extnID).filter((oid) => oid !== extensionOids.subjectAltName),
      ...attributes.map(({ type }) => type).filter((oid) => oid !== extensionRequestOid),
    ],
  };
}

function readExtensions(attribute: Attribute | undefined): readonly Extension[] {
  if (attribute === undefined) return [];
  // pkijs leaves an empty set undefined.
  const values: readonly BaseBlock[] | undefined = attribute.values;
  const [value, ...more] = values ?? [];
  if (value === undefined || more.length > 0) throw invalid("extensionRequest must have exactly one value");
  const given = value.valueBeforeDecodeView.slice();
  const problem = "extensionRequest is not a list of extensions (RFC 5280, section 4.1)";
  const { extensions, written } = parseOr(problem, () => {
    const parsed = new Extensions({ schema: value });
    return { extensions: parsed.extensions, written: new Uint8Array(parsed.toSchema().toBER()) };
  });
  if (Buffer.compare(written, given) !== 0) throw invalid(problem);
  return extensions;
}

function readNames(value: Uint8Array): readonly AlternativeName[] {
  requireDer("subjectAltName", value);
  return decodeAlternativeNames(value);
}

function requireUnique(what: string, types: readonly string[], most: number): void {
  if (types.length > most) throw invalid(`the request has ${types.length} ${what}s; the limit is ${most}`);
  const twice = types.find((type, i) => types.indexOf(type) !== i);
  if (twice !== undefined) throw invalid(`the request has the ${what} ${twice} twice`);
}

function parseOr<T>(problem: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    // pkijs messages refer to its own schemas.
    throw invalid(problem);
  }
}

function invalid(problem: string): CryptoError {
  return new CryptoError("INVALID_ARGUMENT", problem);
}
