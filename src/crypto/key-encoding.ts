import { type Algorithm, type AlgorithmInfo, algorithms } from "./algorithms.ts";
import { wipe } from "./bytes.ts";
import { checkBytes } from "./checks.ts";
import { CryptoError } from "./crypto-error.ts";
import {
  element,
  matchShape,
  objectIdentifier,
  renderShape,
  type Shape,
  type SlotValues,
  tag,
} from "./der.ts";
import { decodePem, encodePem } from "./pem.ts";

/** The DER documents of one algorithm, one shape for each accepted form. */
interface KeyShapes {
  readonly subjectPublicKeyInfo: Shape;
  readonly pkcs8: readonly Shape[];
}

/** secp256r1 (RFC 5480, section 2.1.1.1). */
const namedCurve = objectIdentifier("1.2.840.10045.3.1.7");

const shapesByAlgorithm: ReadonlyMap<Algorithm, KeyShapes> = new Map(
  Object.values(algorithms).map((info) => [
    info.name,
    {
      subjectPublicKeyInfo: subjectPublicKeyInfo(info),
      pkcs8: privateKeyForms(info).map((form) => pkcs8(info, form)),
    },
  ]),
);

/** Writes a raw public key as SubjectPublicKeyInfo in PEM. */
export function encodePublicKeyPem(algorithm: Algorithm, publicKey: Uint8Array): string {
  return encodePem("PUBLIC KEY", encodePublicKeyDer(algorithm, publicKey));
}

/** Writes SubjectPublicKeyInfo in DER. @param publicKey raw, `publicKeyBytes` long */
export function encodePublicKeyDer(algorithm: Algorithm, publicKey: Uint8Array): Uint8Array {
  return renderShape(findShapes(algorithm).subjectPublicKeyInfo, { publicKey });
}

/**
 * Reads SubjectPublicKeyInfo in PEM, strictly: no parameters besides the object identifier, and
 * exactly the bytes of the standard's form.
 *
 * @returns the raw public key, `publicKeyBytes` long.
 * @throws INVALID_KEY; its message names the algorithm found if we support it.
 */
export function decodePublicKeyPem(algorithm: Algorithm, pem: string): Uint8Array {
  const der = decodePem("PUBLIC KEY", pem);
  const publicKey = matchShape(findShapes(algorithm).subjectPublicKeyInfo, der)?.publicKey;
  if (publicKey !== undefined) return publicKey;
  const formsOf = (shapes: KeyShapes) => [shapes.subjectPublicKeyInfo];
  throw unexpectedForm(algorithm, "the PEM block", "SubjectPublicKeyInfo", der, formsOf);
}

/** Finds the algorithm of a document that is SubjectPublicKeyInfo in DER of any of ours, equally strictly. */
export function findPublicKeyAlgorithm(der: Uint8Array): Algorithm | undefined {
  return findAlgorithm(der, (shapes) => [shapes.subjectPublicKeyInfo]);
}

/** Writes PKCS#8 in PEM, in the form that holds exactly the given parts. */
export function encodeSecretKeyPem(algorithm: Algorithm, parts: SlotValues): string {
  const der = encodePkcs8(algorithm, parts);
  try {
    return encodePem("PRIVATE KEY", der);
  } finally {
    wipe(der);
  }
}

/** Writes PKCS#8 in DER, in the form that holds exactly the given parts. The caller wipes it. */
export function encodePkcs8(algorithm: Algorithm, parts: SlotValues): Uint8Array {
  const given = Object.keys(parts).sort().join();
  const shape = findShapes(algorithm).pkcs8.find((candidate) => slotNames(candidate) === given);
  if (shape === undefined) throw new RangeError(`PKCS#8 of ${algorithm} does not support ${given}`);
  return renderShape(shape, parts);
}

/**
 * Reads PKCS#8 in PEM, strictly: version 0, no parameters besides the object identifier (for ECDSA
 * the curve), no attributes. ML-DSA and ML-KEM keys are a seed, an expandedKey or both (RFC 9881 and
 * 9935, section 6), never the bare bytes of the drafts. SLH-DSA keys are raw (RFC 9909, section 6).
 * ECDSA keys come with or without their point (RFC 5915, section 3). An X-Wing key is its bare seed, 32 bytes,
 * without a public key (draft-connolly-cfrg-xwing-kem-10, section 5.8.2).
 *
 * @returns the parts that the document holds. The caller wipes them.
 * @throws INVALID_KEY; its message names the algorithm found if we support it.
 */
export function decodeSecretKeyPem(algorithm: Algorithm, pem: string): SlotValues {
  const der = decodePem("PRIVATE KEY", pem);
  const parts = decodePkcs8(algorithm, der);
  if (parts !== undefined) return parts;
  try {
    throw unexpectedForm(algorithm, "the PEM block", "PKCS#8", der, (shapes) => shapes.pkcs8);
  } finally {
    wipe(der);
  }
}

/**
 * Reads PKCS#8 in DER, as strictly as `decodeSecretKeyPem`.
 *
 * @returns the parts that the document holds, as views into it.
 * @throws INVALID_KEY; its message names the algorithm found if we support it. INVALID_ARGUMENT for other values than bytes
 */
export function decodeSecretKeyDer(algorithm: Algorithm, der: Uint8Array): SlotValues {
  checkBytes("DER", der);
  const parts = decodePkcs8(algorithm, der);
  if (parts !== undefined) return parts;
  throw unexpectedForm(algorithm, "the DER document", "PKCS#8", der, (shapes) => shapes.pkcs8);
}

/** Finds the algorithm of a document that is PKCS#8 in DER of any of ours. */
export function findPkcs8Algorithm(der: Uint8Array): Algorithm | undefined {
  return findAlgorithm(der, (shapes) => shapes.pkcs8);
}

/** Reads PKCS#8 in DER, equally strictly. @returns views into it, or undefined when it has none of the forms */
export function decodePkcs8(algorithm: Algorithm, der: Uint8Array): SlotValues | undefined {
  for (const shape of findShapes(algorithm).pkcs8) {
    const parts = matchShape(shape, der);
    if (parts !== undefined) return parts;
  }
  return undefined;
}

function unexpectedForm(
  algorithm: Algorithm,
  origin: string,
  document: string,
  der: Uint8Array,
  formsOf: (shapes: KeyShapes) => readonly Shape[],
): CryptoError {
  const found = findAlgorithm(der, formsOf);
  const problem =
    found === undefined
      ? `${origin} is not the ${document} of ${algorithm} in strict DER (${der.length} bytes)`
      : `${origin} contains an ${found} key; expected ${algorithm}`;
  return new CryptoError("INVALID_KEY", problem);
}

function findAlgorithm(
  der: Uint8Array,
  formsOf: (shapes: KeyShapes) => readonly Shape[],
): Algorithm | undefined {
  for (const [algorithm, shapes] of shapesByAlgorithm) {
    if (formsOf(shapes).some((shape) => matchShape(shape, der) !== undefined)) return algorithm;
  }
  return undefined;
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

/** RFC 5280, section 4.1.2.7. A BIT STRING starts with the number of unused bits: none. */
function subjectPublicKeyInfo(info: AlgorithmInfo): Shape {
  return element(
    tag.sequence,
    ...algorithmIdentifier(info),
    ...element(tag.bitString, Uint8Array.of(0), { slot: "publicKey", length: info.publicKeyBytes }),
  );
}

/** RFC 5958, section 2: version 0 and no attributes. */
function pkcs8(info: AlgorithmInfo, privateKey: Shape): Shape {
  return element(
    tag.sequence,
    ...element(tag.integer, Uint8Array.of(0)),
    ...algorithmIdentifier(info),
    ...element(tag.octetString, ...privateKey),
  );
}

function algorithmIdentifier(info: AlgorithmInfo): Shape {
  const parameters = info.family === "ECDSA" ? namedCurve : [];
  return element(tag.sequence, ...objectIdentifier(info.oid), ...parameters);
}

/** Returns the accepted contents of the OCTET STRING of PKCS#8. */
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
