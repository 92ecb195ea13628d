/** Reads one CMS SignerInfo (RFC 5652, section 5.3). */
import {
  type BaseBlock,
  Constructed,
  Null,
  ObjectIdentifier,
  OctetString,
  Primitive,
  Sequence,
} from "asn1js";
import { type AlgorithmIdentifier, IssuerAndSerialNumber, type SignerInfo } from "pkijs";
import type { SignatureAlgorithm } from "../../src/crypto/algorithms.ts";
import { type CmsDigest, findDigest, findSignatureAlgorithm, oids } from "./cms-algorithms.ts";
import { readAttributes, readTime } from "./cms-attributes.ts";
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
  if (hasParameters(info.signatureAlgorithm))
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

function hasParameters({ algorithmParams }: AlgorithmIdentifier): boolean {
  return algorithmParams !== undefined;
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
