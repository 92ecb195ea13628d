import { decodeBase64url, encodeBase64url } from "./base64url.ts";
import { invalidArgument } from "./crypto-error.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "./provider.ts";
import { type JsonObject, type JsonValue, parseJsonObject } from "./strict-json.ts";

/** Signature algorithms of our tokens (RFC 9964, section 4). Their FIPS 204 context is empty. */
export const tokenAlgorithms = ["ML-DSA-65", "ML-DSA-44"] as const;

export type TokenAlgorithm = (typeof tokenAlgorithms)[number];

/** Token types: any JWT, or an access token of RFC 9068. */
export type TokenType = "JWT" | "at+jwt";

/** Maximum length of a token, in characters; ours have about 4,600. */
export const maxTokenCharacters = 16_384;

/**
 * Rejected header members: unknown extensions (`crit`, and `b64` of RFC 7797), and members that embed or link
 * keys in the token (RFC 8725, sections 3.9 and 3.10).
 */
const refusedHeaderMembers = ["crit", "b64", "jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256"] as const;

/** Token claims (RFC 7519, section 4.1). Times are whole seconds since 1970-01-01T00:00:00Z. */
export interface JwtPayload extends JsonObject {
  sub: string;
  /** The token is valid until just before this second. */
  exp: number;
}

export interface JwtInput {
  /** The `kid` by which verifiers find the public key: its JWK thumbprint. */
  readonly keyId: string;
  /** Default: "JWT". */
  readonly type?: TokenType;
  /** Additional header members, such as `use`; not `alg`, `typ`, `kid` or a rejected member. */
  readonly header?: JsonObject | undefined;
  readonly payload: JwtPayload;
}

/** Why a token was rejected, in the order of the checks. */
export type JwtRefusal =
  | "MALFORMED"
  | "WRONG_ALGORITHM"
  | "UNKNOWN_KEY"
  | "BAD_SIGNATURE"
  | "EXPIRED"
  | "NOT_YET_VALID";

export type JwtVerification =
  | { readonly ok: true; readonly type: TokenType; readonly header: JsonObject; readonly payload: JwtPayload }
  | { readonly ok: false; readonly reason: JwtRefusal; readonly message: string };

/**
 * Creates a signed token in compact serialization (RFC 7515, section 7.1) with the header members `alg`,
 * `typ`, `kid` and the given ones, in this order.
 *
 * @param secretKey an ML-DSA-65 or ML-DSA-44 key
 * @returns base64url(header).base64url(payload).base64url(signature)
 * @throws INVALID_ARGUMENT if the token would not verify: wrong algorithm, reserved header member, or claims
 *   that `verifyJwt` calls malformed
 */
export async function signJwt(
  provider: CryptoProvider,
  secretKey: SecretKey,
  input: JwtInput,
): Promise<string> {
  const { keyId, type = "JWT", header = {}, payload } = input;
  const alg = findTokenAlgorithm(secretKey.algorithm);
  if (alg === undefined) {
    throw invalidArgument(`a token needs a ${tokenAlgorithms.join(" or ")} key, not ${secretKey.algorithm}`);
  }
  const reserved = ["alg", "typ", "kid", ...refusedHeaderMembers].find((name) => Object.hasOwn(header, name));
  if (reserved !== undefined) throw invalidArgument(`header member ${reserved} is reserved`);
  const { problem } = readClaims(payload);
  if (problem !== undefined) throw invalidArgument(problem);
  const protectedHeader = { alg, typ: type, kid: keyId, ...header };
  const signingInput = `${encodeJson(protectedHeader)}.${encodeJson(payload)}`;
  const signature = await provider.sign(secretKey, new TextEncoder().encode(signingInput));
  return `${signingInput}.${encodeBase64url(signature)}`;
}

/**
 * Verifies a token in compact serialization. The payload is not parsed before the signature has been verified
 * with a trusted key. The header cannot select a different algorithm or key.
 *
 * @param publicKeys the trusted keys by `kid`
 * @param now the time to compare with
 */
export async function verifyJwt(
  provider: CryptoProvider,
  publicKeys: ReadonlyMap<string, PublicKey>,
  token: string,
  now: Date,
): Promise<JwtVerification> {
  const parts = splitToken(token);
  if (parts === undefined)
    return rejection("MALFORMED", "not a JWT: expected three parts in strict base64url");
  const header = parseJsonObject(parts.header);
  if (header === undefined)
    return rejection("MALFORMED", "the header must be a JSON object without duplicate members");
  const alg = findTokenAlgorithm(header.alg);
  if (alg === undefined) return rejection("WRONG_ALGORITHM", `alg must be ${tokenAlgorithms.join(" or ")}`);
  const headerProblem = findHeaderProblem(header);
  if (headerProblem !== undefined) return rejection("MALFORMED", headerProblem);

  const publicKey = typeof header.kid === "string" ? publicKeys.get(header.kid) : undefined;
  if (publicKey === undefined) return rejection("UNKNOWN_KEY", "this issuer has no key with the token's kid");
  if (publicKey.algorithm !== alg)
    return rejection("WRONG_ALGORITHM", `alg must match the key's algorithm, ${publicKey.algorithm}`);
  if (!(await provider.verify(publicKey, parts.signingInput, parts.signature))) {
    return rejection("BAD_SIGNATURE", "the signature does not verify");
  }
  const payload = parseJsonObject(parts.payload);
  if (payload === undefined)
    return rejection("MALFORMED", "the payload must be a JSON object without duplicate members");
  return checkClaims(header, payload, now);
}

/** Splits a token and decodes its parts; undefined if it is too long or does not have three valid parts. */
function splitToken(token: string) {
  const texts = token.length > maxTokenCharacters ? [] : token.split(".");
  if (texts.length !== 3) return undefined;
  const [header, payload, signature] = texts.map(decodeBase64url);
  if (header === undefined || payload === undefined || signature === undefined) return undefined;
  const signingInput = new TextEncoder().encode(token.slice(0, token.lastIndexOf(".")));
  return { header, payload, signature, signingInput };
}

function findTokenAlgorithm(name: unknown): TokenAlgorithm | undefined {
  return tokenAlgorithms.find((known) => known === name);
}

/** RFC 7515, section 4.1.9: "application/" may be omitted, and media types are case-insensitive. */
function readType({ typ }: JsonObject): TokenType | undefined {
  if (typ === "JWT") return typ;
  return typeof typ === "string" && /^(application\/)?at\+jwt$/i.test(typ) ? "at+jwt" : undefined;
}

function findHeaderProblem(header: JsonObject): string | undefined {
  if (readType(header) === undefined) return "typ must be JWT or at+jwt";
  if (typeof header.kid !== "string") return "kid must be a string";
  const refused = refusedHeaderMembers.find((name) => Object.hasOwn(header, name));
  return refused && `header member ${refused} is not accepted`;
}

function checkClaims(header: JsonObject, claims: JsonObject, now: Date): JwtVerification {
  const { payload, startsAt, problem } = readClaims(claims);
  if (payload === undefined) return rejection("MALFORMED", problem);
  const nowSeconds = now.getTime() / 1000;
  if (nowSeconds >= payload.exp) {
    return rejection("EXPIRED", `expired at ${toIsoString(payload.exp)}`);
  }
  if (nowSeconds < startsAt - maxClockDifference) {
    return rejection("NOT_YET_VALID", `not valid before ${toIsoString(startsAt)}`);
  }
  return { ok: true, type: readType(header) ?? "JWT", header, payload };
}

/**
 * Seconds by which a token may come from the future. Its issuer may be another server with the same store, whose clock
 * is a little ahead (RFC 7519, section 4.1.5).
 */
const maxClockDifference = 5;

type Claims =
  | { payload: JwtPayload; startsAt: number; problem?: undefined }
  | { payload?: undefined; startsAt?: undefined; problem: string };

/** Checks the known claims; `startsAt` is the later of `iat` and `nbf`, in seconds. */
function readClaims(claims: JsonObject): Claims {
  const { sub, exp, iat = 0, nbf = 0 } = claims;
  if (typeof sub !== "string" || sub === "") return { problem: "sub must be a non-empty string" };
  if (!isTime(exp)) return { problem: `exp ${timeRule}` };
  if (!isTime(iat)) return { problem: `iat ${timeRule}` };
  if (!isTime(nbf)) return { problem: `nbf ${timeRule}` };
  return { payload: { ...claims, sub, exp }, startsAt: Math.max(iat, nbf) };
}

/** 9999-12-31T23:59:59Z, the last second that all our formats can represent. */
const maxTime = 253_402_300_799;
const timeRule = `must be whole seconds from 0 to ${maxTime}`;

function isTime(value: JsonValue | undefined): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= maxTime;
}

function toIsoString(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

function encodeJson(value: JsonObject): string {
  return encodeBase64url(new TextEncoder().encode(JSON.stringify(value)));
}

function rejection(reason: JwtRefusal, message: string): JwtVerification {
  return { ok: false, reason, message };
}
