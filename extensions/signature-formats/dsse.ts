/** Dead Simple Signing Envelope (DSSE) 1.0: protocol.md and envelope.md of secure-systems-lab/dsse. */
import { type JsonObject, type JsonValue, parseJsonObject } from "../../src/crypto/strict-json.ts";
import { FormatError, requireSize } from "./format-error.ts";
import { maxDocumentBytes, maxEmbeddedBytes, maxJsonTokens, maxSignatures } from "./limits.ts";

/** A parsed envelope, not yet verified. */
export interface DsseEnvelope {
  /** Media type or URI that says how to interpret the payload. It is signed. */
  readonly payloadType: string;
  readonly payload: Uint8Array;
  readonly signatures: readonly DsseSignature[];
}

export interface DsseSignature {
  /** Key hint, not authenticated; "" if absent. */
  readonly keyId: string;
  readonly signature: Uint8Array;
}

/** Maximum payload type length in bytes. */
const maxPayloadTypeBytes = 1024;

/**
 * Encodes the bytes to sign: PAE(type, payload) = "DSSEv1" SP LEN(type) SP type SP LEN(payload) SP payload,
 * where lengths are decimal byte counts (protocol.md, "Signature Definition").
 */
export function encodePae(payloadType: string, payload: Uint8Array): Uint8Array {
  const type = new TextEncoder().encode(payloadType);
  const head = new TextEncoder().encode(`DSSEv1 ${type.length} ${payloadType} ${payload.length} `);
  return Buffer.concat([head, payload]);
}

/**
 * Validates a payload type chosen by a signer.
 *
 * @throws FormatError if it is empty, too long, or contains a control character
 */
export function checkPayloadType(payloadType: string): void {
  if (payloadType === "") throw new FormatError("the payload type is empty; name a media type or a URI");
  if (/[\p{Cc}\p{Cs}]/u.test(payloadType))
    throw new FormatError("the payload type contains a control character; name a media type or a URI");
  requireSize("the payload type", Buffer.byteLength(payloadType), maxPayloadTypeBytes);
}

/** Encodes an envelope as one line of JSON. */
export function renderDsse({ payloadType, payload, signatures }: DsseEnvelope): string {
  const signed = signatures.map(({ keyId, signature }) => ({ keyid: keyId, sig: signature.toBase64() }));
  return `${JSON.stringify({ payload: payload.toBase64(), payloadType, signatures: signed })}\n`;
}

/**
 * Parses an envelope. Members that DSSE does not define are ignored, as the spec requires. Duplicate members
 * are rejected, because parsers differ on which one counts.
 *
 * @throws FormatError
 */
export function parseDsse(bytes: Uint8Array): DsseEnvelope {
  requireSize("the envelope", bytes.length, maxDocumentBytes);
  const envelope = parseJsonObject(bytes, maxJsonTokens);
  if (envelope === undefined)
    throw new FormatError("the envelope is not one JSON object without duplicate members");
  const payloadType = readText(envelope, "payloadType");
  checkPayloadType(payloadType);
  const payload = decodeBase64("payload", readText(envelope, "payload"));
  requireSize("the payload", payload.length, maxEmbeddedBytes);
  return { payloadType, payload, signatures: readSignatures(envelope.signatures) };
}

function readSignatures(signatures: JsonValue | undefined): DsseSignature[] {
  if (!Array.isArray(signatures) || signatures.length === 0 || signatures.length > maxSignatures)
    throw new FormatError(`signatures must be an array of 1 to ${maxSignatures} objects`);
  return signatures.map((value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw new FormatError("every element of signatures must be an object");
    const keyId = value.keyid ?? "";
    if (typeof keyId !== "string") throw new FormatError("keyid in a signature must be a string");
    return { keyId, signature: decodeBase64("sig of a signature", readText(value, "sig")) };
  });
}

function readText(from: JsonObject, name: string): string {
  const value = Object.hasOwn(from, name) ? from[name] : undefined;
  if (typeof value === "string") return value;
  throw new FormatError(`${name} must be a string`);
}

/** Verifiers must accept both base64 alphabets (envelope.md). */
function decodeBase64(name: string, text: string): Uint8Array {
  const alphabet = /[-_]/.test(text) ? "base64url" : "base64";
  try {
    // `fromBase64` would skip white space, which gives one signature several encodings.
    if (!/\s/.test(text)) return Uint8Array.fromBase64(text, { alphabet, lastChunkHandling: "strict" });
  } catch {
    // Reported below.
  }
  throw new FormatError(`${name} must be base64 with padding and without white space`);
}
