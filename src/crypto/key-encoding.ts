import { type Algorithm, type AlgorithmInfo, algorithms } from "./algorithms.ts";
import { equalBytes, wipe } from "./bytes.ts";
import { checkBytes } from "./checks.ts";
import { type CryptoError, invalidKey } from "./crypto-error.ts";
import {
  element,
  matchShape,
  objectIdentifier,
  readChildren,
  renderShape,
  type Shape,
  type SlotValues,
  tag,
} from "./der.ts";
import { decodePem, encodePem } from "./pem.ts";
import { requireDer } from "./strict-der.ts";

/** DER documents of one algorithm, one shape per accepted form. */
interface KeyShapes {
  readonly subjectPublicKeyInfo: Shape;
  /** Shapes of `privateKeyAlgorithm` and `privateKey` in PKCS#8. */
  readonly pkcs8: readonly Shape[];
}

/** secp256r1 (RFC 5480, section 2.1.1.1). */
const namedCurve = objectIdentifier("1.2.840.10045.3.1.7");

const shapesByAlgorithm: ReadonlyMap<Algorithm, KeyShapes> = new Map(
  Object.values(algorithms).map((info) => [
    info.name,
    {
      subjectPublicKeyInfo: subjectPublicKeyInfo(info),
      pkcs8: privateKeyForms(info).map((form) => [
        ...algorithmIdentifier(info),
        ...element(tag.octetString, ...form),
      ]),
    },
  ]),
);

/** Encodes a raw public key as SubjectPublicKeyInfo in PEM. */
export function encodePublicKeyPem(algorithm: Algorithm, publicKey: Uint8Array): string {
  return encodePem("PUBLIC KEY", encodePublicKeyDer(algorithm, publicKey));
}

/**
 * Encodes a raw public key as SubjectPublicKeyInfo in DER.
 *
 * @param publicKey raw, `publicKeyBytes` long
 */
export function encodePublicKeyDer(algorithm: Algorithm, publicKey: Uint8Array): Uint8Array {
  return renderShape(findShapes(algorithm).subjectPublicKeyInfo, { publicKey });
}

/**
 * Decodes SubjectPublicKeyInfo in PEM, strictly: no parameters besides the object identifier, and exactly the
 * bytes of the standard's form.
 *
 * @returns the raw public key, `publicKeyBytes` long
 * @throws INVALID_KEY, naming the algorithm found if it is a supported one
 */
export function decodePublicKeyPem(algorithm: Algorithm, pem: string): Uint8Array {
  const der = decodePem("PUBLIC KEY", pem);
  const publicKey = matchShape(findShapes(algorithm).subjectPublicKeyInfo, der)?.publicKey;
  if (publicKey !== undefined) return publicKey;
  const found = findPublicKeyAlgorithm(der);
  throw unexpectedForm(algorithm, "the PEM block", "SubjectPublicKeyInfo", der, found);
}

/** Finds the algorithm of SubjectPublicKeyInfo in DER, with the same strictness. */
export function findPublicKeyAlgorithm(der: Uint8Array): Algorithm | undefined {
  for (const [algorithm, { subjectPublicKeyInfo }] of shapesByAlgorithm)
    if (matchShape(subjectPublicKeyInfo, der) !== undefined) return algorithm;
  return undefined;
}

/** Encodes PKCS#8 in PEM, in the form that holds exactly the given parts. */
export function encodeSecretKeyPem(algorithm: Algorithm, parts: SlotValues): string {
  const der = encodePkcs8(algorithm, parts);
  try {
    return encodePem("PRIVATE KEY", der);
  } finally {
    wipe(der);
  }
}

/** Encodes PKCS#8 in DER, in the form that holds exactly the given parts. The caller wipes it. */
export function encodePkcs8(algorithm: Algorithm, parts: SlotValues): Uint8Array {
  const given = Object.keys(parts).sort().join();
  const shape = findShapes(algorithm).pkcs8.find((candidate) => slotNames(candidate) === given);
  if (shape === undefined) throw new RangeError(`PKCS#8 of ${algorithm} does not support ${given}`);
  return renderShape(element(tag.sequence, ...element(tag.integer, Uint8Array.of(0)), ...shape), parts);
}

/**
 * Decodes PKCS#8 in PEM (RFC 5958), strictly: version v1, or v2 with the public key, which the caller must
 * compare; no parameters besides the object identifier (for ECDSA, the curve). Attributes are ignored. ML-DSA
 * and ML-KEM keys are a seed, an expandedKey or both (RFC 9881 and 9935, section 6), never the bare bytes of
 * early drafts. SLH-DSA keys are raw (RFC 9909, section 6). ECDSA keys may include their point (RFC 5915,
 * section 3). An X-Wing key is its bare seed, 32 bytes, without a public key
 * (draft-connolly-cfrg-xwing-kem-11, section 5.8.2). A composite key is the seed of ML-DSA followed by the
 * classical key (draft-ietf-lamps-pq-composite-sigs-19, sections 4.2 and 5.3).
 *
 * @returns the parts in the document; the caller wipes them
 * @throws INVALID_KEY, naming the algorithm found if it is a supported one
 */
export function decodeSecretKeyPem(algorithm: Algorithm, pem: string): SlotValues {
  const der = decodePem("PRIVATE KEY", pem);
  const parts = decodePkcs8(algorithm, der);
  if (parts !== undefined) return parts;
  try {
    throw unexpectedPkcs8(algorithm, "the PEM block", der);
  } finally {
    wipe(der);
  }
}

/**
 * Decodes PKCS#8 in DER, as strictly as `decodeSecretKeyPem`.
 *
 * @returns the parts in the document, as views into it
 * @throws INVALID_KEY, naming the algorithm found if it is a supported one; INVALID_ARGUMENT for anything but
 *   bytes
 */
export function decodeSecretKeyDer(algorithm: Algorithm, der: Uint8Array): SlotValues {
  checkBytes("DER", der);
  const parts = decodePkcs8(algorithm, der);
  if (parts !== undefined) return parts;
  throw unexpectedPkcs8(algorithm, "the DER document", der);
}

/** Finds the algorithm of PKCS#8 in DER. */
export function findPkcs8Algorithm(der: Uint8Array): Algorithm | undefined {
  const document = readPkcs8(der);
  if (document === undefined) return undefined;
  for (const [algorithm, shapes] of shapesByAlgorithm)
    if (matchPkcs8(shapes, document) !== undefined) return algorithm;
  return undefined;
}

/**
 * Decodes PKCS#8 in DER with the same strictness.
 *
 * @returns views into it; undefined if it matches no accepted form
 */
export function decodePkcs8(algorithm: Algorithm, der: Uint8Array): SlotValues | undefined {
  const document = readPkcs8(der);
  return document === undefined ? undefined : matchPkcs8(findShapes(algorithm), document);
}

/**
 * Explains why a PKCS#8 document does not contain a key in an accepted form.
 *
 * @returns undefined if it is not PKCS#8 or its algorithm is not supported
 */
export function explainPkcs8(der: Uint8Array): string | undefined {
  const document = readPkcs8(der);
  if (document === undefined) return undefined;
  const { version, publicKey, algorithm, privateKey } = document;
  if (version !== (publicKey === undefined ? 0 : 1))
    return publicKey === undefined
      ? `PKCS#8 of version ${version} without a public key; expected version 0, or 1 with one (RFC 5958, section 2)`
      : `PKCS#8 of version ${version} with a public key; expected version 1 (RFC 5958, section 2)`;
  const info = Object.values(algorithms).find((candidate) =>
    matchShape(algorithmIdentifier(candidate), algorithm),
  );
  if (info === undefined || matchPkcs8(findShapes(info.name), document) !== undefined) return undefined;
  const { length } = privateKey;
  const bare =
    length === info.seedBytes ? "seed" : length === info.secretKeyBytes ? "expanded key" : undefined;
  return bare === undefined
    ? `PKCS#8 of ${info.name} with ${length} bytes, which match no form of its standard`
    : `PKCS#8 with the bare ${bare} of ${info.name}, a form of early drafts; give these ${length} bytes as a raw key`;
}

/** OneAsymmetricKey (RFC 5958, section 2). All bytes are views. */
interface Pkcs8Document {
  readonly version: number;
  readonly algorithm: Uint8Array;
  /** Content of its OCTET STRING. */
  readonly privateKey: Uint8Array;
  /** The algorithm followed by the OCTET STRING. */
  readonly body: Uint8Array;
  readonly publicKey: Uint8Array | undefined;
}

/** @returns undefined if the document is not PKCS#8 */
function readPkcs8(der: Uint8Array): Pkcs8Document | undefined {
  if (der[0] !== tag.sequence || !isDer(der)) return undefined;
  const [version, algorithm, privateKey, ...optional] = readChildren(der);
  if (version?.tag !== tag.integer || version.content.length !== 1) return undefined;
  if (algorithm?.tag !== tag.sequence || privateKey?.tag !== tag.octetString) return undefined;
  // Attributes, such as a friendly name, do not affect the key.
  if (optional[0]?.tag === tag.constructedContext0) optional.shift();
  const [bits, another] = optional;
  if (another !== undefined) return undefined;
  if (bits !== undefined && (bits.tag !== tag.implicitContext1 || bits.content[0] !== 0)) return undefined;
  return {
    version: version.content[0] ?? 0,
    algorithm: der.subarray(algorithm.start, algorithm.end),
    privateKey: privateKey.content,
    body: der.subarray(algorithm.start, privateKey.end),
    publicKey: bits?.content.subarray(1),
  };
}

function isDer(document: Uint8Array): boolean {
  try {
    requireDer("the document", document);
    return true;
  } catch {
    return false;
  }
}

function matchPkcs8(shapes: KeyShapes, { version, body, publicKey }: Pkcs8Document): SlotValues | undefined {
  if (version !== (publicKey === undefined ? 0 : 1)) return undefined;
  for (const shape of shapes.pkcs8) {
    const parts = matchShape(shape, body);
    if (parts === undefined) continue;
    // ECPrivateKey may also contain the public key (RFC 5915, section 3).
    const isSame =
      parts.publicKey === undefined || publicKey === undefined || equalBytes(parts.publicKey, publicKey);
    return isSame ? { ...parts, ...(publicKey !== undefined && { publicKey }) } : undefined;
  }
  return undefined;
}

function unexpectedPkcs8(algorithm: Algorithm, origin: string, der: Uint8Array): CryptoError {
  const reason = explainPkcs8(der);
  return reason === undefined
    ? unexpectedForm(algorithm, origin, "PKCS#8", der, findPkcs8Algorithm(der))
    : invalidKey(`${origin} is ${reason}`);
}

function unexpectedForm(
  algorithm: Algorithm,
  origin: string,
  document: string,
  der: Uint8Array,
  found: Algorithm | undefined,
): CryptoError {
  const problem =
    found === undefined
      ? `${origin} is not the ${document} of ${algorithm} in strict DER (${der.length} bytes)`
      : `${origin} contains an ${found} key; expected ${algorithm}`;
  return invalidKey(problem);
}

function findShapes(algorithm: Algorithm): KeyShapes {
  const shapes = shapesByAlgorithm.get(algorithm);
  if (shapes === undefined) throw new RangeError(`no key encoding for ${algorithm}`);
  return shapes;
}

function slotNames(shape: Shape): string {
  const names = shape.flatMap((part) => (part instanceof Uint8Array ? [] : [part.slot]));
  return names.sort().join();
}

/** RFC 5280, section 4.1.2.7. A BIT STRING starts with its number of unused bits, here 0. */
function subjectPublicKeyInfo(info: AlgorithmInfo): Shape {
  return element(
    tag.sequence,
    ...algorithmIdentifier(info),
    ...element(tag.bitString, Uint8Array.of(0), { slot: "publicKey", length: info.publicKeyBytes }),
  );
}

function algorithmIdentifier(info: AlgorithmInfo): Shape {
  const parameters = info.family === "ECDSA" ? namedCurve : [];
  return element(tag.sequence, ...objectIdentifier(info.oid), ...parameters);
}

/** Returns the accepted contents of the PKCS#8 OCTET STRING. */
function privateKeyForms(info: AlgorithmInfo): readonly Shape[] {
  const raw = { slot: "raw", length: info.secretKeyBytes } as const;
  if (info.family === "ECDSA") {
    const start = [...element(tag.integer, Uint8Array.of(1)), ...element(tag.octetString, raw)];
    const point = { slot: "publicKey", length: info.publicKeyBytes } as const;
    const publicKey = element(tag.explicitContext1, ...element(tag.bitString, Uint8Array.of(0), point));
    return [element(tag.sequence, ...start, ...publicKey), element(tag.sequence, ...start)];
  }
  if (info.seedBytes === undefined) return [[raw]];
  const seed = { slot: "seed", length: info.seedBytes } as const;
  if (info.family === "X-Wing") return [[seed]];
  return [
    element(tag.implicitContext0, seed),
    element(tag.octetString, raw),
    element(tag.sequence, ...element(tag.octetString, seed), ...element(tag.octetString, raw)),
  ];
}
