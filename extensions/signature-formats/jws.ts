/** JSON Web Signatures (RFC 7515) with ML-DSA (RFC 9964): compact and flattened JSON serialization. */
import { isMlDsaAlgorithm, type MlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import { decodeBase64url, encodeBase64url } from "../../src/crypto/base64url.ts";
import { type JsonObject, parseJsonObject } from "../../src/crypto/strict-json.ts";
import { FormatError, requireSize } from "./format-error.ts";
import { maxDocumentBytes, maxEmbeddedBytes, maxJsonTokens } from "./limits.ts";

/** The two forms of one signature (RFC 7515, sections 7.1 and 7.2.2). */
export type JwsSerialization = "compact" | "json";

/** A parsed JWS, not yet verified. */
export interface Jws {
  readonly algorithm: MlDsaAlgorithm;
  /** The protected header exactly as signed, in base64url. */
  readonly protectedHeader: string;
  /** Undefined for a detached payload (RFC 7515, appendix F). */
  readonly payload: Uint8Array | undefined;
  readonly signature: Uint8Array;
}

/** Maximum protected header length in base64url characters. */
const maxHeaderCharacters = 16_384;

/**
 * Header members that are rejected in file signatures: critical extensions (`crit`, and RFC 7797's `b64`,
 * which changes what is signed), and keys or key URLs, which would let the document choose its own key.
 */
const refusedMembers = ["crit", "b64", "jwk", "jku", "x5u", "x5c"] as const;

/**
 * Encodes a protected header.
 *
 * @param keyId the SHA-256 thumbprint of the JWK (RFC 9964, section 6)
 */
export function encodeJwsHeader(algorithm: MlDsaAlgorithm, keyId: string): string {
  return encodeBase64url(new TextEncoder().encode(JSON.stringify({ alg: algorithm, kid: keyId })));
}

/**
 * Yields the bytes to sign, protected header "." base64url(payload), in constant memory (RFC 7515, section
 * 5.1).
 */
export async function* encodeJwsSigningInput(
  protectedHeader: string,
  payload: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${protectedHeader}.`, "latin1");
  let rest = new Uint8Array();
  for await (const chunk of payload) {
    // Three bytes make four characters; the remainder waits for the next chunk.
    const bytes = Buffer.concat([rest, chunk]);
    const wholeBytes = bytes.length - (bytes.length % 3);
    yield Buffer.from(encodeBase64url(bytes.subarray(0, wholeBytes)), "latin1");
    rest = Uint8Array.from(bytes.subarray(wholeBytes));
  }
  yield Buffer.from(encodeBase64url(rest), "latin1");
}

/**
 * Encodes a JWS.
 *
 * @param jws.payload undefined for a detached payload
 */
export function renderJws(
  { protectedHeader, payload, signature }: Omit<Jws, "algorithm">,
  serialization: JwsSerialization,
): string {
  const encoded = payload === undefined ? undefined : encodeBase64url(payload);
  if (serialization === "compact")
    return `${protectedHeader}.${encoded ?? ""}.${encodeBase64url(signature)}\n`;
  const members = { ...(encoded !== undefined && { payload: encoded }), protected: protectedHeader };
  return `${JSON.stringify({ ...members, signature: encodeBase64url(signature) })}\n`;
}

/**
 * Parses a JWS in compact or flattened JSON serialization; a compact one may end with one line break.
 *
 * An empty payload part means a detached payload: both look the same, and given the content they verify the
 * same way.
 *
 * @throws FormatError
 */
export function parseJws(bytes: Uint8Array): Jws {
  requireSize("the JWS", bytes.length, maxDocumentBytes);
  const isJson = /^[ \t\r\n]*\{/.test(Buffer.from(bytes.subarray(0, 64)).toString("latin1"));
  const parts = isJson ? splitJson(bytes) : splitCompact(bytes);
  const payload = parts.payload === "" ? undefined : decodePart("payload", parts.payload);
  requireSize("the payload", payload?.length ?? 0, maxEmbeddedBytes);
  const signature = decodePart("signature", parts.signature);
  const { protectedHeader } = parts;
  const header = parseHeader(protectedHeader);
  checkUnprotected(parts.unprotected, header);
  return { algorithm: readAlgorithm(header), protectedHeader, payload, signature };
}

interface Parts {
  readonly unprotected: JsonObject;
  readonly protectedHeader: string;
  /** "" if detached. */
  readonly payload: string;
  readonly signature: string;
}

function splitCompact(bytes: Uint8Array): Parts {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  // A fourth part is an error; splitting stops there.
  const parts = text.replace(/\r?\n$/, "").split(".", 4);
  const [protectedHeader = "", payload = "", signature = ""] = parts;
  if (parts.length === 3) return { unprotected: {}, protectedHeader, payload, signature };
  throw new FormatError("the JWS is neither three parts separated by dots nor a JSON object");
}

function splitJson(bytes: Uint8Array): Parts {
  const object = parseJsonObject(bytes, maxJsonTokens);
  if (object === undefined) throw new FormatError("the JWS is not one JSON object without duplicate members");
  if (Object.hasOwn(object, "signatures"))
    throw new FormatError("the JWS uses general JSON serialization; use compact or flattened JSON");
  const { header = {}, protected: protectedHeader, payload = "", signature } = object;
  if (typeof protectedHeader !== "string" || typeof payload !== "string" || typeof signature !== "string")
    throw new FormatError("protected, payload and signature must be strings in a JWS");
  if (typeof header !== "object" || header === null || Array.isArray(header))
    throw new FormatError("header must be an object in a JWS");
  return { unprotected: header, protectedHeader, payload, signature };
}

/**
 * RFC 7515, section 7.2.1: no member may repeat one of the protected header. alg is read from the signed
 * header only.
 */
function checkUnprotected(unprotected: JsonObject, header: JsonObject): void {
  const refused = ["alg", "kid", ...refusedMembers, ...Object.keys(header)].find((name) =>
    Object.hasOwn(unprotected, name),
  );
  if (refused !== undefined)
    throw new FormatError(
      `the unprotected header of the JWS contains ${refused}, which is not allowed there`,
    );
}

function parseHeader(protectedHeader: string): JsonObject {
  requireSize("the protected header", protectedHeader.length, maxHeaderCharacters, "characters");
  const header = parseJsonObject(decodePart("protected header", protectedHeader), maxJsonTokens);
  if (header !== undefined) return header;
  throw new FormatError("the protected header is not one JSON object without duplicate members");
}

function readAlgorithm(header: JsonObject): MlDsaAlgorithm {
  const refused = refusedMembers.find((name) => Object.hasOwn(header, name));
  if (refused !== undefined)
    throw new FormatError(`the protected header contains ${refused}, which is not supported`);
  const { alg } = header;
  if (typeof alg === "string" && isMlDsaAlgorithm(alg)) return alg;
  throw new FormatError("alg in the protected header must be ML-DSA-44, ML-DSA-65 or ML-DSA-87");
}

function decodePart(name: string, text: string): Uint8Array {
  const bytes = decodeBase64url(text);
  if (bytes !== undefined) return bytes;
  throw new FormatError(`the ${name} of the JWS is not base64url without padding`);
}
