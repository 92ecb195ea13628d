/**
 * COSE_Sign1 (RFC 9052, section 4.2) with ML-DSA (RFC 9964), in deterministic CBOR (RFC 8949, section 4.2.1).
 */
import { createHash } from "node:crypto";
import {
  type DecodeOptions,
  decodeFirst,
  encode,
  rfc8949EncodeOptions,
  Tagged,
  Tokenizer,
  Type,
} from "cborg";
import { isMlDsaAlgorithm, type MlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import type { PublicKey } from "../../src/crypto/provider.ts";
import { FormatError, requireSize } from "./format-error.ts";
import { maxEmbeddedBytes } from "./limits.ts";
import { requireMlDsa } from "./require-ml-dsa.ts";

/** A parsed COSE_Sign1, not yet verified. */
export interface CoseSign1 {
  readonly algorithm: MlDsaAlgorithm;
  /** The protected header exactly as signed: an encoded CBOR map. */
  readonly protectedHeader: Uint8Array;
  /** Undefined for detached content (RFC 9052, section 4.1). */
  readonly payload: Uint8Array | undefined;
  readonly signature: Uint8Array;
}

/** Maximum message size: the largest content, the largest signature, and 64 KiB for headers. */
const maxCoseBytes = maxEmbeddedBytes + 64 * 1024;
/**
 * Maximum data items per message, which also bounds the depth. Ours have eleven, including the protected
 * header's.
 */
const maxItems = 256;

/** CBOR tag of COSE_Sign1 (RFC 9052, table 1). */
const sign1Tag = 18;
/** Labels of header parameters (RFC 9052, table 3). */
const label = { algorithm: 1, critical: 2, keyId: 4 } as const;
/** Labels and values of a COSE_Key of type AKP (RFC 9964, section 3). */
const akpKey = { keyType: 1, algorithm: 3, publicKey: -1, typeAkp: 7 } as const;

/** COSE algorithm identifiers (RFC 9964, section 5). */
const identifiers: Readonly<Record<MlDsaAlgorithm, number>> = {
  "ML-DSA-44": -48,
  "ML-DSA-65": -49,
  "ML-DSA-87": -50,
};

/** Encodes an algorithm's protected header. */
export function encodeCoseHeader(algorithm: MlDsaAlgorithm): Uint8Array {
  return encode(new Map([[label.algorithm, identifiers[algorithm]]]), rfc8949EncodeOptions);
}

/** Encodes the bytes to sign: Sig_structure with an empty external_aad (RFC 9052, section 4.4). */
export function encodeSigStructure(protectedHeader: Uint8Array, payload: Uint8Array): Uint8Array {
  return encode(["Signature1", protectedHeader, new Uint8Array(), payload], rfc8949EncodeOptions);
}

/** Computes a key's SHA-256 thumbprint, 32 bytes (RFC 9679; RFC 9964, section 6 lists the members). */
export function computeCoseKeyId(key: PublicKey): Uint8Array {
  const { keyType, typeAkp, publicKey } = akpKey;
  const members = new Map<number, number | Uint8Array>([
    [keyType, typeAkp],
    [akpKey.algorithm, identifiers[requireMlDsa(key.algorithm)]],
    [publicKey, key.exportRaw()],
  ]);
  return new Uint8Array(createHash("sha256").update(encode(members, rfc8949EncodeOptions)).digest());
}

/**
 * Encodes a tagged COSE_Sign1.
 *
 * @param message.payload undefined for a detached payload
 * @param keyId goes into the unprotected header
 */
export function renderCose(message: Omit<CoseSign1, "algorithm">, keyId: Uint8Array): Uint8Array {
  const { protectedHeader, payload = null, signature } = message;
  const unprotected = new Map([[label.keyId, keyId]]);
  return encode(
    new Tagged(sign1Tag, [protectedHeader, unprotected, payload, signature]),
    rfc8949EncodeOptions,
  );
}

/**
 * Parses a tagged COSE_Sign1 in strict encoding: shortest lengths and whole numbers, no indefinite lengths, no
 * duplicate labels, and no whole numbers as floating-point numbers.
 *
 * @throws FormatError
 */
export function parseCose(bytes: Uint8Array): CoseSign1 {
  requireSize("the COSE message", bytes.length, maxCoseBytes);
  const message = decodeStrictly("the COSE message", bytes, Tagged.preserve(sign1Tag));
  if (!(message instanceof Tagged))
    throw new FormatError("the COSE message does not begin with tag 18 (COSE_Sign1)");
  const parts: unknown = message.value;
  if (!Array.isArray(parts) || parts.length !== 4)
    throw new FormatError("a COSE_Sign1 must be an array of four elements");
  const [protectedHeader, unprotected, payload, signature]: unknown[] = parts;
  if (!(protectedHeader instanceof Uint8Array) || !(signature instanceof Uint8Array))
    throw new FormatError("the protected header and the signature must be byte strings");
  if (payload !== null && !(payload instanceof Uint8Array))
    throw new FormatError("the payload must be a byte string, or nil if it is detached");
  if (!(unprotected instanceof Map)) throw new FormatError("the unprotected header must be a map");
  if (unprotected.has(label.algorithm) || unprotected.has(label.critical))
    throw new FormatError(
      "the unprotected header contains alg or crit, which belong in the protected header",
    );
  const header = readHeader(protectedHeader);
  // RFC 9052, section 3: programs could use either value.
  if (header.keys().some((name) => unprotected.has(name)))
    throw new FormatError("the protected and the unprotected header contain the same label");
  const algorithm = readAlgorithm(header);
  requireSize("the payload", payload?.length ?? 0, maxEmbeddedBytes);
  return { algorithm, protectedHeader, payload: payload ?? undefined, signature };
}

function readHeader(protectedHeader: Uint8Array): ReadonlyMap<unknown, unknown> {
  const header = decodeStrictly("the protected header", protectedHeader);
  if (header instanceof Map) return header;
  throw new FormatError("the protected header is not a CBOR map");
}

function readAlgorithm(header: ReadonlyMap<unknown, unknown>): MlDsaAlgorithm {
  if (header.has(label.critical))
    throw new FormatError("the protected header contains crit, which is not supported");
  const found = header.get(label.algorithm);
  const [algorithm] = Object.entries(identifiers).find(([, identifier]) => identifier === found) ?? [];
  if (algorithm !== undefined && isMlDsaAlgorithm(algorithm)) return algorithm;
  throw new FormatError("alg in the protected header must be -48, -49 or -50 (ML-DSA-44, -65 or -87)");
}

/**
 * Stops at a maximum number of data items, before they exhaust memory or stack, and at 1.0: JavaScript cannot
 * distinguish it from 1, but the label or algorithm 1.0 is a different one (RFC 9052, section 1.5).
 */
class StrictTokenizer extends Tokenizer {
  #items = 0;

  override next() {
    this.#items += 1;
    if (this.#items > maxItems) throw new FormatError(`more than ${maxItems} data items`);
    const token = super.next();
    if (Type.equals(token.type, Type.float) && Number.isInteger(token.value))
      throw new FormatError(`the whole number ${token.value} is encoded as a floating-point number`);
    return token;
  }
}

function decodeStrictly(name: string, bytes: Uint8Array, tags: DecodeOptions["tags"] = {}): unknown {
  const options = {
    strict: true,
    useMaps: true,
    rejectDuplicateMapKeys: true,
    allowIndefinite: false,
    allowUndefined: false,
    tags,
  };
  try {
    const tokenizer = new StrictTokenizer(bytes, options);
    const [value, { length }] = decodeFirst(bytes, { ...options, tokenizer });
    if (length > 0) throw new FormatError(`${length} bytes follow it`);
    return value;
  } catch (error) {
    const reason = error instanceof Error ? error.message : "unreadable";
    throw new FormatError(`${name} is not strict CBOR: ${reason}`);
  }
}
