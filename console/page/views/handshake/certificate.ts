/** Reads X.509 certificates (RFC 5280) and other DER (ITU-T X.690) as fields. */
import type { FieldReader, Kind } from "./field.ts";

/** Names for an element and its parts. */
interface Shape {
  readonly name: string;
  /** Identifier octet of an optional element. */
  readonly tag?: number;
  /** Shapes of the elements inside, in order. */
  readonly parts?: readonly Shape[];
  /** The shape of each element inside. */
  readonly each?: Shape;
  readonly kind?: Kind;
}

const algorithm = (name: string): Shape => ({ name, parts: [{ name: "algorithm" }, { name: "parameters" }] });
const distinguishedName = (name: string): Shape => ({
  name,
  each: {
    name: "RelativeDistinguishedName",
    each: { name: "AttributeTypeAndValue", parts: [{ name: "type" }, { name: "value" }] },
  },
});

/** RFC 5280, section 4.1. */
const certificate: Shape = {
  name: "Certificate",
  parts: [
    {
      name: "tbsCertificate",
      parts: [
        { name: "version", tag: 0xa0 },
        { name: "serialNumber" },
        algorithm("signature"),
        distinguishedName("issuer"),
        { name: "validity", parts: [{ name: "notBefore" }, { name: "notAfter" }] },
        distinguishedName("subject"),
        {
          name: "subjectPublicKeyInfo",
          parts: [algorithm("algorithm"), { name: "subjectPublicKey", kind: "publicKey" }],
        },
        { name: "issuerUniqueID", tag: 0x81 },
        { name: "subjectUniqueID", tag: 0x82 },
        {
          name: "extensions",
          tag: 0xa3,
          parts: [
            {
              name: "Extensions",
              each: {
                name: "Extension",
                parts: [{ name: "extnID" }, { name: "critical", tag: 0x01 }, { name: "extnValue" }],
              },
            },
          ],
        },
      ],
    },
    algorithm("signatureAlgorithm"),
    { name: "signatureValue", kind: "signature" },
  ],
};

/** RFC 3279, section 2.2.3. */
const ecdsaSignature: Shape = {
  name: "ECDSA-Sig-Value",
  parts: [
    { name: "r", kind: "signature" },
    { name: "s", kind: "signature" },
  ],
};

/** FIPS 204, algorithm 22: sizes of ML-DSA public keys. */
const mldsaKeyBytes = [1312, 1952, 2592];

const typeNames: Readonly<Record<number, string>> = {
  1: "BOOLEAN",
  2: "INTEGER",
  3: "BIT STRING",
  4: "OCTET STRING",
  5: "NULL",
  6: "OBJECT IDENTIFIER",
  12: "UTF8String",
  19: "PrintableString",
  22: "IA5String",
  23: "UTCTime",
  24: "GeneralizedTime",
  48: "SEQUENCE",
  49: "SET",
};

const objectNames: Readonly<Record<string, string>> = {
  "1.2.840.10045.2.1": "id-ecPublicKey",
  "1.2.840.10045.3.1.7": "secp256r1",
  "1.3.132.0.34": "secp384r1",
  "1.2.840.10045.4.3.2": "ecdsa-with-SHA256",
  "1.2.840.10045.4.3.3": "ecdsa-with-SHA384",
  "1.2.840.113549.1.1.1": "rsaEncryption",
  "1.2.840.113549.1.1.11": "sha256WithRSAEncryption",
  "1.3.101.112": "id-Ed25519",
  "2.16.840.1.101.3.4.3.17": "id-ml-dsa-44 (RFC 9881)",
  "2.16.840.1.101.3.4.3.18": "id-ml-dsa-65 (RFC 9881)",
  "2.16.840.1.101.3.4.3.19": "id-ml-dsa-87 (RFC 9881)",
  "2.5.4.3": "commonName",
  "2.5.4.6": "countryName",
  "2.5.4.10": "organizationName",
  "2.5.29.14": "subjectKeyIdentifier",
  "2.5.29.15": "keyUsage",
  "2.5.29.17": "subjectAltName",
  "2.5.29.19": "basicConstraints",
  "2.5.29.35": "authorityKeyIdentifier",
  "2.5.29.37": "extKeyUsage",
  "1.3.6.1.5.5.7.3.1": "serverAuth",
  "1.3.6.1.5.5.7.3.2": "clientAuth",
};

/** Deeper elements stay bytes. */
const maxDepth = 24;

export function readCertificate(reader: FieldReader): void {
  readElement(reader, certificate, 0);
}

export function readEcdsaSignature(reader: FieldReader): void {
  readElement(reader, ecdsaSignature, 0);
}

function readElement(reader: FieldReader, shape: Shape | undefined, depth: number): void {
  const { bytes, at } = reader;
  const tag = bytes[at] ?? 0;
  const { headerSize, size } = readLength(bytes, at);
  const name = shape?.name ?? typeNames[tag] ?? `[${tag & 0x1f}]`;
  if (headerSize > reader.left || depth > maxDepth || (tag & 0x1f) === 0x1f) {
    reader.rest(name);
    reader.blame(`${name} is not a DER element`);
    return;
  }
  reader.group(name, headerSize + size, (inner) => {
    inner.take("identifier and length octets", headerSize, {
      kind: "framing",
      show: () => `${typeNames[tag] ?? `[${tag & 0x1f}]`}, ${size} bytes`,
    });
    const content = bytes.subarray(inner.at, inner.end);
    if ((tag & 0x20) !== 0) {
      readElements(inner, shape, depth + 1);
      return undefined;
    }
    if (tag === 3) inner.take("unused bits", 1, { kind: "framing", show: (count) => String(count[0]) });
    // Extension values are DER inside an OCTET STRING.
    if (tag === 4 && name === "extnValue") readElement(inner, undefined, depth + 1);
    else if (name === "subjectPublicKey") readPublicKey(inner);
    else inner.rest("contents", { kind: shape?.kind, show: () => showContent(tag, content) });
    return showContent(tag, content);
  });
}

function readPublicKey(reader: FieldReader): void {
  if (mldsaKeyBytes.includes(reader.left)) reader.take("ρ", 32, { kind: "publicKey" });
  reader.rest(mldsaKeyBytes.includes(reader.left + 32) ? "t1" : "contents", { kind: "publicKey" });
}

function readElements(reader: FieldReader, shape: Shape | undefined, depth: number): void {
  let next = 0;
  while (reader.left > 0) {
    const tag = reader.bytes[reader.at];
    while (shape?.parts?.[next]?.tag !== undefined && shape.parts[next]?.tag !== tag) next += 1;
    readElement(reader, shape?.each ?? shape?.parts?.[next], depth);
    next += 1;
  }
}

/** Bytes of identifier and length, and of the contents (X.690, section 8.1.3). */
function readLength(bytes: Uint8Array, at: number): { readonly headerSize: number; readonly size: number } {
  const first = bytes[at + 1] ?? 0;
  const count = first < 0x80 ? 0 : first & 0x7f;
  let size = count === 0 ? first : 0;
  for (let place = 0; place < count; place += 1) size = size * 256 + (bytes[at + 2 + place] ?? 0);
  return { headerSize: 2 + count, size: Math.min(size, 2 ** 24) };
}

function showContent(tag: number, content: Uint8Array): string | undefined {
  if (tag === 6) return showObjectIdentifier(content);
  if (tag === 1) return content[0] === 0 ? "FALSE" : "TRUE";
  if (tag === 2 && content.length <= 4) return String(content.reduce((sum, byte) => sum * 256 + byte, 0));
  const isText = tag === 12 || (tag >= 19 && tag <= 24) || tag === 0x82;
  return isText ? new TextDecoder().decode(content) : undefined;
}

function showObjectIdentifier(content: Uint8Array): string {
  const numbers: number[] = [];
  let number = 0;
  for (const byte of content) {
    number = number * 128 + (byte & 0x7f);
    if (byte >= 0x80) continue;
    numbers.push(number);
    number = 0;
  }
  const [first = 0, ...others] = numbers;
  const root = Math.min(2, Math.floor(first / 40));
  const text = [root, first - 40 * root, ...others].join(".");
  const name = objectNames[text];
  return name === undefined ? text : `${text}, ${name}`;
}
