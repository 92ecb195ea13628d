/** Decodes the names in certificate requests (RFC 5280, sections 4.1.2.4 and 4.2.1.6). */
import {
  type BaseBlock,
  Constructed,
  fromBER,
  IA5String,
  ObjectIdentifier,
  Primitive,
  PrintableString,
  Sequence,
  Set as SetOf,
  Utf8String,
} from "asn1js";
import {
  type AlternativeName,
  alternativeNameKinds,
  maxAlternativeNames,
  readAlternativeName,
  toAddress,
} from "../../src/crypto/alternative-names.ts";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import {
  type AttributeType,
  attributeRules,
  checkDistinguishedName,
  type DistinguishedName,
  type NameAttribute,
} from "../../src/crypto/distinguished-name.ts";
import { generalNameTags } from "../../src/crypto/name-encoding.ts";

/** Maximum bytes of an alternative name, of any kind: the longest URI. Errors quote shorter ones. */
const maxNameBytes = 2048;

/**
 * Decodes a name strictly: RFC 4514 types only, one attribute per part, and strings as UTF8String,
 * PrintableString or IA5String.
 *
 * @param name DER that `requireDer` has accepted
 * @throws INVALID_ARGUMENT
 */
export function decodeDistinguishedName(name: ArrayBuffer): DistinguishedName {
  const decoded = childrenOf(fromBER(name).result).map(decodePart);
  checkDistinguishedName(decoded);
  return decoded;
}

function decodePart(part: BaseBlock): NameAttribute {
  const attributes = part instanceof SetOf ? part.valueBlock.value : [];
  if (attributes.length !== 1)
    throw invalid(
      `the subject has a part with ${attributes.length} attributes; only one attribute per part is supported`,
    );
  const [oid, value, ...more] = childrenOf(attributes[0]);
  if (!(oid instanceof ObjectIdentifier) || value === undefined || more.length > 0)
    throw invalid("a part of the subject is not a type and a value");
  const type = findType(oid.valueBlock.toString());
  if (type === undefined)
    throw invalid(
      `the subject has an attribute of type ${oid.valueBlock.toString()}; supported types are ${Object.keys(attributeRules).join(", ")}`,
    );
  return { type, value: decodeString(type, value) };
}

function findType(oid: string): AttributeType | undefined {
  return (Object.keys(attributeRules) as AttributeType[]).find((type) => attributeRules[type].oid === oid);
}

/** Reads the string's bytes itself, because asn1js replaces invalid UTF-8. */
function decodeString(type: AttributeType, block: BaseBlock): string {
  const bytes = contentOf(block);
  const isAscii = bytes.every((byte) => byte < 0x80);
  if (
    block instanceof Utf8String ||
    ((block instanceof PrintableString || block instanceof IA5String) && isAscii)
  ) {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {}
  }
  throw invalid(`the subject's ${type} is not a well-formed UTF8String, PrintableString or IA5String`);
}

/**
 * Decodes the names in subjectAltName and checks each one.
 *
 * @param names DER that `requireDer` has accepted
 * @throws INVALID_ARGUMENT, even for valid kinds of names that this CA does not issue
 */
export function decodeAlternativeNames(names: Uint8Array): readonly AlternativeName[] {
  const decoded = childrenOf(fromBER(names).result);
  if (decoded.length < 1 || decoded.length > maxAlternativeNames)
    throw invalid(`subjectAltName has ${decoded.length} names; it must have 1 to ${maxAlternativeNames}`);
  return decoded.map(decodeAlternativeName);
}

function decodeAlternativeName(block: BaseBlock): AlternativeName {
  const { tagClass, tagNumber } = block.idBlock;
  const kind = alternativeNameKinds.find((candidate) => generalNameTags[candidate] === tagNumber);
  if (tagClass !== 3 || kind === undefined || !(block instanceof Primitive))
    throw invalid("subjectAltName has an unsupported kind of name; use dns, ip, email or uri");
  const bytes = contentOf(block);
  if (bytes.length > maxNameBytes)
    throw invalid(`subjectAltName has a name of ${bytes.length} bytes; the limit is ${maxNameBytes}`);
  const text = kind === "ip" ? toAddress(bytes) : String.fromCharCode(...bytes);
  if (text === undefined)
    throw invalid(`subjectAltName has an IP address of ${bytes.length} bytes; expected 4 or 16`);
  return readAlternativeName(kind, text);
}

/**
 * The children of a SEQUENCE.
 *
 * @throws INVALID_ARGUMENT
 */
export function childrenOf(block: BaseBlock | undefined): readonly BaseBlock[] {
  if (block instanceof Sequence) return block.valueBlock.value;
  throw invalid("the request has a different element where a SEQUENCE is required");
}

/** An element's content, without tag and length. */
function contentOf(block: BaseBlock): Uint8Array {
  if (block instanceof Constructed) throw invalid("the request has a constructed string (in several pieces)");
  const headerBytes = block.idBlock.blockLength + block.lenBlock.blockLength;
  return block.valueBeforeDecodeView.subarray(headerBytes);
}

function invalid(problem: string): CryptoError {
  return new CryptoError("INVALID_ARGUMENT", problem);
}
