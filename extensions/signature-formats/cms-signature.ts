/** Reads one CMS SignerInfo (RFC 5652, section 5.3) and its signed attributes (section 11). */
import {
  type BaseBlock,
  Constructed,
  GeneralizedTime,
  Null,
  ObjectIdentifier,
  OctetString,
  Primitive,
  Sequence,
  UTCTime,
} from "asn1js";
import { IssuerAndSerialNumber, type SignedAndUnsignedAttributes, type SignerInfo } from "pkijs";
import type { SignatureAlgorithm } from "../../src/crypto/algorithms.ts";
import { type CmsDigest, findDigest, findSignatureAlgorithm, oids } from "./cms-algorithms.ts";
import { FormatError } from "./format-error.ts";

/** A parsed signature, not yet verified. */
export interface CmsSignature {
  readonly algorithm: SignatureAlgorithm;
  readonly digest: CmsDigest;
  /** The hash of the content. */
  readonly messageDigest: Uint8Array;
  /** Signed bytes: the signed attributes' DER as a SET OF. */
  readonly signedAttributes: Uint8Array;
  readonly signature: Uint8Array;
  /** Signing time claimed by the signer; undefined if absent. */
  readonly signingTime: Date | undefined;
  /** The certificate or key that the message names; not authenticated. */
  readonly signer: CmsSignerName;
}

/** Either DER of a certificate's issuer and serial number, or a key identifier. */
export type CmsSignerName =
  | { readonly issuerAndSerialNumber: Uint8Array }
  | { readonly keyIdentifier: Uint8Array };

/** @returns undefined for an unsupported algorithm, which another signer may have used */
export function readSignature(info: SignerInfo): CmsSignature | undefined {
  const algorithm = findSignatureAlgorithm(info.signatureAlgorithm.algorithmId);
  if (algorithm === undefined) return undefined;
  if (info.signatureAlgorithm.algorithmParams !== undefined)
    throw new FormatError(`the algorithm ${algorithm} has parameters; expected none`);
  const digest = findDigest(info.digestAlgorithm.algorithmId, algorithm);
  if (digest === undefined)
    throw new FormatError(
      `the digest ${info.digestAlgorithm.algorithmId} is unknown or too short for ${algorithm}`,
    );
  // RFC 5754, section 2, allows NULL.
  const { algorithmParams } = info.digestAlgorithm;
  if (algorithmParams !== undefined && !(algorithmParams instanceof Null))
    throw new FormatError(`the digest ${digest.oid} has parameters; expected none`);
  const signer = readSigner(info.sid);
  const version = "keyIdentifier" in signer ? 3 : 1;
  if (info.version !== version)
    throw new FormatError(`a SignerInfo has version ${info.version}; expected ${version}`);
  // Without them, a different message's signed attributes could pass as content.
  if (info.signedAttrs === undefined)
    throw new FormatError("a signature in the CMS message has no signed attributes");
  const signedAttributes = new Uint8Array(info.signedAttrs.encodedValue);
  const values = readAttributes(info.signedAttrs);
  checkProtection(values.get(oids.algorithmProtection), digest.oid, info.signatureAlgorithm.algorithmId);
  const contentType = values.get(oids.contentType);
  if (!(contentType instanceof ObjectIdentifier) || contentType.getValue() !== oids.data)
    throw new FormatError("the signed attribute content-type must be data");
  const messageDigest = values.get(oids.messageDigest);
  if (!(messageDigest instanceof OctetString))
    throw new FormatError("the signed attribute message-digest must be an octet string");
  return {
    algorithm,
    digest,
    messageDigest: messageDigest.valueBlock.valueHexView,
    signedAttributes,
    signature: info.signature.valueBlock.valueHexView,
    signingTime: readTime(values.get(oids.signingTime)),
    signer,
  };
}

/** RFC 6211, section 4: if present, the attribute must match the SignerInfo's algorithms. */
function checkProtection(value: BaseBlock | undefined, digestOid: string, signatureOid: string): void {
  if (value === undefined) return;
  const [digest, signature] = value instanceof Sequence ? value.valueBlock.value : [];
  const isSame =
    digest instanceof Sequence &&
    signature instanceof Constructed &&
    signature.idBlock.tagNumber === 1 &&
    isObjectIdentifier(digest.valueBlock.value[0], digestOid) &&
    isObjectIdentifier(signature.valueBlock.value[0], signatureOid);
  if (!isSame)
    throw new FormatError(
      "the signed attribute CMSAlgorithmProtection does not match the signature's algorithms",
    );
}

function isObjectIdentifier(block: unknown, oid: string): boolean {
  return block instanceof ObjectIdentifier && block.getValue() === oid;
}

function readSigner(sid: unknown): CmsSignerName {
  if (sid instanceof IssuerAndSerialNumber)
    return { issuerAndSerialNumber: new Uint8Array(sid.toSchema().toBER()) };
  if (sid instanceof Primitive) return { keyIdentifier: sid.valueBlock.valueHexView };
  throw new FormatError("a signer is identified neither by its certificate nor by its key");
}

/**
 * Reads attributes. Each must occur once and have one value, and they must be in DER order: the signed bytes
 * are the message's own bytes.
 *
 * @returns attribute values by object identifier
 * @throws FormatError
 */
function readAttributes({ attributes }: SignedAndUnsignedAttributes): ReadonlyMap<string, BaseBlock> {
  const values = new Map<string, BaseBlock>();
  let previous = new Uint8Array();
  for (const attribute of attributes) {
    const {
      type,
      values: [value, another],
    } = attribute;
    const encoded = new Uint8Array(attribute.toSchema().toBER());
    if (values.has(type)) throw new FormatError(`the signed attribute ${type} occurs twice`);
    if (!isBlock(value) || another !== undefined)
      throw new FormatError(`the signed attribute ${type} must have one value`);
    if (Buffer.compare(previous, encoded) > 0)
      throw new FormatError("the signed attributes are not in DER order");
    values.set(type, value);
    previous = encoded;
  }
  return values;
}

/**
 * Reads a signing time.
 *
 * @returns undefined if absent
 * @throws FormatError
 */
function readTime(value: BaseBlock | undefined): Date | undefined {
  if (value === undefined) return undefined;
  const time = parseTime(value);
  if (time !== undefined) return time;
  throw new FormatError("the signed attribute signing-time is not a valid time");
}

/**
 * Whole seconds and Z (RFC 5652, section 11.3). asn1js would read month 13 as the next January, and text as
 * 1899.
 */
function parseTime(value: BaseBlock): Date | undefined {
  if (!(value instanceof UTCTime)) return undefined;
  const text = Buffer.from(value.valueBlock.valueHexView).toString("latin1");
  // asn1js derives GeneralizedTime from UTCTime, whose years start at 1950.
  const century = value instanceof GeneralizedTime ? "" : text < "50" ? "20" : "19";
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(century + text);
  if (parts === null) return undefined;
  const [, year, month, day, hour, minute, second] = parts;
  const written = `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`;
  const time = new Date(written);
  return !Number.isNaN(time.getTime()) && time.toISOString() === written ? time : undefined;
}

function isBlock(value: unknown): value is BaseBlock {
  return typeof value === "object" && value !== null && "toBER" in value;
}
