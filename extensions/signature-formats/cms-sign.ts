/**
 * Creates detached CMS SignedData (RFC 5652) with ML-DSA (RFC 9882) or SLH-DSA (RFC 9814). pkijs encodes the
 * ASN.1.
 */
import {
  type BaseBlock,
  Constructed,
  Integer,
  ObjectIdentifier,
  OctetString,
  Primitive,
  Sequence,
} from "asn1js";
import {
  AlgorithmIdentifier,
  Attribute,
  Certificate,
  ContentInfo,
  EncapsulatedContentInfo,
  IssuerAndSerialNumber,
  SignedAndUnsignedAttributes,
  SignedData,
  SignerInfo,
  Time,
} from "pkijs";
import { type SignatureAlgorithm, signatureAlgorithms } from "../../src/crypto/algorithms.ts";
import { computeKeyIdentifier } from "../../src/crypto/certificate-parts.ts";
import { oids, selectDigest } from "./cms-algorithms.ts";

/** A signature's signed attributes, ready to sign. */
export interface CmsAttributes {
  readonly algorithm: SignatureAlgorithm;
  /** In DER order. */
  readonly attributes: readonly Attribute[];
  /** Bytes to sign: the attributes' DER as a SET OF (RFC 5652, section 5.4). */
  readonly toBeSigned: Uint8Array;
}

/**
 * Certificates in DER, the signer's first and then its CAs'; or the raw public key of a signer without a
 * certificate.
 */
export type CmsSigner =
  | { readonly certificates: readonly [Uint8Array, ...Uint8Array[]] }
  | { readonly publicKey: Uint8Array };

/** The SET tag, which replaces the attributes' [0] in the message. */
const setTag = 0x31;

/**
 * Creates the attributes: content type, message digest and signing time (RFC 5652, section 11), and the
 * algorithms (RFC 6211), so that they cannot be replaced.
 *
 * @param contentDigest the content's digest, made with `selectDigest(algorithm)`
 */
export function createCmsAttributes(
  algorithm: SignatureAlgorithm,
  contentDigest: Uint8Array,
  signingTime: Date,
): CmsAttributes {
  const attributes = [
    attribute(oids.contentType, new ObjectIdentifier({ value: oids.data })),
    attribute(oids.messageDigest, new OctetString({ valueHex: contentDigest })),
    attribute(oids.signingTime, toTime(signingTime)),
    attribute(oids.algorithmProtection, protectAlgorithms(algorithm)),
  ];
  // X.690, section 11.6: SET OF elements are sorted by their encodings.
  attributes.sort((left, right) => Buffer.compare(encodeDer(left.toSchema()), encodeDer(right.toSchema())));
  const toBeSigned = encodeDer(wrapAttributes(attributes).toSchema());
  toBeSigned[0] = setTag;
  return { algorithm, attributes, toBeSigned };
}

/** Encodes SignedData with one signer and no content in DER. */
export function renderCms(
  { algorithm, attributes }: CmsAttributes,
  signature: Uint8Array,
  signer: CmsSigner,
): Uint8Array {
  const certificates =
    "certificates" in signer ? signer.certificates.map((der) => Certificate.fromBER(der)) : [];
  const signerInfo = new SignerInfo({
    // RFC 5652, section 5.3: 1 for issuerAndSerialNumber, 3 for subjectKeyIdentifier.
    version: "certificates" in signer ? 1 : 3,
    sid: "publicKey" in signer ? identifyKey(signer.publicKey) : identifyCertificate(certificates[0]),
    digestAlgorithm: new AlgorithmIdentifier({ algorithmId: selectDigest(algorithm).oid }),
    signedAttrs: wrapAttributes(attributes),
    signatureAlgorithm: new AlgorithmIdentifier({ algorithmId: signatureAlgorithms[algorithm].oid }),
    signature: new OctetString({ valueHex: signature }),
  });
  const signedData = new SignedData({
    // RFC 5652, section 5.1: 3 if any signer has version 3, for content of type data.
    version: signerInfo.version,
    digestAlgorithms: [new AlgorithmIdentifier({ algorithmId: selectDigest(algorithm).oid })],
    encapContentInfo: new EncapsulatedContentInfo({ eContentType: oids.data }),
    ...(certificates.length > 0 && { certificates }),
    signerInfos: [signerInfo],
  });
  return encodeDer(
    new ContentInfo({ contentType: oids.signedData, content: signedData.toSchema(true) }).toSchema(),
  );
}

function attribute(type: string, value: BaseBlock): Attribute {
  return new Attribute({ type, values: [value] });
}

function wrapAttributes(attributes: readonly Attribute[]): SignedAndUnsignedAttributes {
  return new SignedAndUnsignedAttributes({ type: 0, attributes: [...attributes] });
}

/** CMSAlgorithmProtection: digestAlgorithm, and signatureAlgorithm as [1] (RFC 6211, section 2). */
function protectAlgorithms(algorithm: SignatureAlgorithm): Sequence {
  const digestOid = new ObjectIdentifier({ value: selectDigest(algorithm).oid });
  const signatureOid = new ObjectIdentifier({ value: signatureAlgorithms[algorithm].oid });
  const signatureAlgorithm = new Constructed({
    idBlock: { tagClass: 3, tagNumber: 1 },
    value: [signatureOid],
  });
  return new Sequence({ value: [new Sequence({ value: [digestOid] }), signatureAlgorithm] });
}

/** UTCTime through 2049, GeneralizedTime after that (RFC 5652, section 11.3). */
function toTime(date: Date): BaseBlock {
  const seconds = new Date(Math.floor(date.getTime() / 1000) * 1000);
  return new Time({ type: date.getUTCFullYear() < 2050 ? 0 : 1, value: seconds }).toSchema();
}

function identifyCertificate(certificate: Certificate | undefined): IssuerAndSerialNumber {
  if (certificate === undefined) throw new RangeError("a signer needs a certificate or a public key");
  const { issuer, serialNumber } = certificate;
  return new IssuerAndSerialNumber({
    issuer,
    serialNumber: new Integer({ valueHex: serialNumber.valueBlock.valueHexView }),
  });
}

/** subjectKeyIdentifier as [0], derived from the key as in RFC 7093. */
function identifyKey(publicKey: Uint8Array): Primitive {
  return new Primitive({ idBlock: { tagClass: 3, tagNumber: 0 }, valueHex: computeKeyIdentifier(publicKey) });
}

function encodeDer(block: BaseBlock): Uint8Array {
  return new Uint8Array(block.toBER());
}
