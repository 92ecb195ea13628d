/** Parses a token and verifies it with the published keys only. */
import { sha256, verifyHere } from "./algorithms.ts";
import { fromBase64Url, fromUtf8, toBase64Url, toUtf8 } from "./values.ts";

/** A compact JWS (RFC 7515, section 7.1), split into its parts. */
export interface TokenParts {
  readonly headerText: string;
  readonly payloadText: string;
  readonly header: Readonly<Record<string, unknown>>;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly signature: Uint8Array<ArrayBuffer>;
  /** The signed text: the first two parts with the dot. */
  readonly signedText: string;
}

/** A public key from a key set. */
export interface PublishedKey {
  readonly kid: string;
  readonly kty: string;
  readonly alg: string;
  readonly pub: string;
}

/** @throws Error for a text that is not a JSON object */
export function readObject(text: string): TokenParts["payload"] {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error("it is not a JSON object");
  return value as TokenParts["payload"];
}

function decodePart(name: string, part: string): Uint8Array<ArrayBuffer> {
  try {
    return fromBase64Url(part);
  } catch {
    throw new Error(`the ${name} is not base64url`);
  }
}

function readPart(name: string, part: string) {
  const bytes = decodePart(name, part);
  try {
    const text = fromUtf8(bytes);
    return { text, object: readObject(text) };
  } catch {
    throw new Error(`the ${name} is not a JSON object`);
  }
}

/** @throws Error for a text that is not a compact JWS of two JSON objects */
export function readToken(token: string): TokenParts {
  const [first, second, third, more] = token.split(".");
  if (first === undefined || second === undefined || third === undefined || more !== undefined) {
    throw new Error("a token has three parts");
  }
  const [header, payload] = [readPart("header", first), readPart("payload", second)];
  return {
    headerText: header.text,
    payloadText: payload.text,
    header: header.object,
    payload: payload.object,
    signature: decodePart("signature", third),
    signedText: `${first}.${second}`,
  };
}

/** Verifies the signature with a key. The verifier chooses the algorithm, not the token. */
export async function verifyToken(token: TokenParts, key: PublishedKey): Promise<boolean> {
  if (token.header.alg !== "ML-DSA-65" || key.alg !== "ML-DSA-65") return false;
  return verifyHere("ML-DSA-65", token.signature, toUtf8(token.signedText), fromBase64Url(key.pub));
}

/**
 * A key's thumbprint: SHA-256 of its members in a fixed order (RFC 7638, section 3; RFC 9964 lists the
 * members).
 */
export async function computeThumbprint({ alg, kty, pub }: PublishedKey): Promise<string> {
  return toBase64Url(await sha256(toUtf8(JSON.stringify({ alg, kty, pub }))));
}

/** The same token with a different payload and the old signature. */
export function withPayload(token: string, payload: unknown): string {
  const [header = "", , signature = ""] = token.split(".");
  return `${header}.${toBase64Url(toUtf8(JSON.stringify(payload)))}.${signature}`;
}
