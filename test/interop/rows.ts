/** Every row of pqc.PqcService and pqc.TokenService of the contract: a call, and what it answers. */
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { ml_kem1024 } from "@noble/post-quantum/ml-kem.js";
import type { Call, JsonRequest } from "./calls.ts";

/** One call of the table. */
export interface Row extends Call {
  readonly title: string;
  readonly service: "pqc.PqcService" | "pqc.TokenService";
  readonly rest: string;
  readonly request: JsonRequest;
  /** The answer as JSON, with what differs from call to call replaced: see `settle`. */
  readonly answer?: unknown;
  /** The refusal, for calls that are refused. */
  readonly refusal?: { readonly code: string; readonly reason: string };
}

const data = Buffer.from("hello");
const keys = ml_dsa65.keygen(new Uint8Array(32));
const signature = Buffer.from(ml_dsa65.sign(data, keys.secretKey));
const publicKey = Buffer.from(keys.publicKey);
const kemPublicKey = Buffer.from(ml_kem1024.keygen(new Uint8Array(64)).publicKey).toString("base64");
const hello = data.toString("base64");
const signed = {
  data: hello,
  signature: signature.toString("base64"),
  publicKey: publicKey.toString("base64"),
};

const jwks = {
  status: "success",
  keys: [{ kty: "AKP", alg: "ML-DSA-65", pub: "1952 bytes", kid: "32 bytes", use: "sig" }],
};
const token = { status: "success", token: "JWT", expiresAt: "time" };
const missingField = { code: "INVALID_ARGUMENT", reason: "FIELD_INVALID" };

const pqc: Omit<Row, "service">[] = [
  {
    title: "signs",
    method: "SignData",
    rest: "POST /api/grpc/sign",
    request: { data: hello },
    answer: {
      status: "success",
      algorithm: "ML-DSA-65",
      signature: "3309 bytes",
      publicKey: "1952 bytes",
      publicKeyPem: "PEM",
    },
  },
  {
    title: "signs with SLH-DSA",
    method: "SignData",
    rest: "POST /api/grpc/sign",
    request: { data: hello, algorithm: "SLH-DSA-SHA2-128f" },
    answer: {
      status: "success",
      algorithm: "SLH-DSA-SHA2-128f",
      signature: "17088 bytes",
      publicKey: "32 bytes",
      publicKeyPem: "PEM",
    },
  },
  {
    title: "refuses to sign nothing",
    method: "SignData",
    rest: "POST /api/grpc/sign",
    request: {},
    refusal: missingField,
  },
  {
    title: "refuses to sign with an unknown algorithm",
    method: "SignData",
    rest: "POST /api/grpc/sign",
    request: { data: hello, algorithm: "RSA" },
    refusal: missingField,
  },
  {
    title: "verifies a signature",
    method: "VerifySignature",
    rest: "POST /api/grpc/verify",
    request: { ...signed, algorithm: "ML-DSA-65" },
    answer: { status: "success", valid: true },
  },
  {
    title: "answers that a signature does not verify",
    method: "VerifySignature",
    rest: "POST /api/grpc/verify",
    request: { ...signed, data: "aGFsbG8=" },
    answer: { status: "success", valid: false },
  },
  {
    title: "refuses a signature of an impossible length",
    method: "VerifySignature",
    rest: "POST /api/grpc/verify",
    request: { ...signed, signature: hello },
    refusal: { code: "INVALID_ARGUMENT", reason: "LENGTH_INVALID" },
  },
  {
    title: "refuses a public key that can be none",
    method: "VerifySignature",
    rest: "POST /api/grpc/verify",
    request: { ...signed, publicKey: hello },
    refusal: { code: "INVALID_ARGUMENT", reason: "KEY_INVALID" },
  },
  {
    title: "exchanges keys with a pair of its own",
    method: "ExchangeKeys",
    rest: "POST /api/grpc/key-exchange",
    request: {},
    answer: {
      status: "success",
      algorithm: "ML-KEM-768",
      sharedSecretLength: 32,
      encapsulatedKey: "1088 bytes",
      sharedSecret: "32 bytes",
      publicKey: "1184 bytes",
      publicKeyPem: "PEM",
      decapsulationKey: "2400 bytes",
      decapsulationKeySeed: "64 bytes",
    },
  },
  {
    title: "exchanges keys with the caller's key",
    method: "ExchangeKeys",
    rest: "POST /api/grpc/key-exchange",
    request: { algorithm: "ML-KEM-1024", publicKey: kemPublicKey },
    answer: {
      status: "success",
      algorithm: "ML-KEM-1024",
      sharedSecretLength: 32,
      encapsulatedKey: "1568 bytes",
      sharedSecret: "32 bytes",
      publicKey: "1568 bytes",
      publicKeyPem: "PEM",
    },
  },
  {
    title: "describes the algorithms of a category",
    method: "GetAlgorithmInfo",
    rest: "GET /api/grpc/algorithms",
    request: { category: "KEM" },
    answer: { status: "success", algorithms: describeKems() },
  },
  {
    title: "issues a token",
    method: "IssueToken",
    rest: "POST /api/grpc/auth/token",
    request: { username: "ada" },
    answer: token,
  },
  {
    title: "refuses a token without a subject",
    method: "IssueToken",
    rest: "POST /api/grpc/auth/token",
    request: {},
    refusal: missingField,
  },
  { title: "lists keys", method: "GetJwks", rest: "GET /api/grpc/auth/jwks", request: {}, answer: jwks },
  {
    title: "tells how it is",
    method: "GetHealth",
    rest: "GET /api/grpc/health",
    request: {},
    answer: {
      status: "success",
      serviceStatus: "UP",
      transport: "X25519MLKEM768",
      authentication: "ML-DSA-65 JWT",
    },
  },
];

const tokens: Omit<Row, "service">[] = [
  {
    title: "greets",
    method: "Hello",
    rest: "GET /api/hello",
    request: {},
    answer: { status: "success", message: "text" },
  },
  {
    title: "tells how it is",
    method: "GetHealth",
    rest: "GET /api/health",
    request: {},
    answer: {
      status: "success",
      serviceStatus: "UP",
      cryptoProvider: "text",
      cryptoProviderActive: true,
    },
  },
  {
    title: "issues a token",
    method: "IssueToken",
    rest: "POST /api/auth/token",
    request: { username: "ada", password: "secret" },
    answer: token,
  },
  {
    title: "verifies a signature",
    method: "VerifyToken",
    rest: "POST /api/auth/verify",
    request: signed,
    answer: { status: "success", valid: true, roles: [] },
  },
  {
    title: "answers why a token is not valid",
    method: "VerifyToken",
    rest: "POST /api/auth/verify",
    request: { token: "hello" },
    answer: { status: "success", valid: false, reason: "text", roles: [] },
  },
  { title: "lists keys", method: "GetJwks", rest: "GET /api/auth/jwks", request: {}, answer: jwks },
  {
    title: "shows secure data to the holder of a token",
    method: "GetSecureData",
    rest: "GET /api/secure",
    request: {},
    withToken: true,
    answer: { status: "success", message: "text", subject: "ada", issuedAt: "time", expiresAt: "time" },
  },
  {
    title: "shows secure data to no other caller",
    method: "GetSecureData",
    rest: "GET /api/secure",
    request: {},
    refusal: { code: "UNAUTHENTICATED", reason: "TOKEN_MISSING" },
  },
  {
    title: "shows its algorithms to the holder of a token",
    method: "GetCryptoInfo",
    rest: "GET /api/crypto-info",
    request: {},
    withToken: true,
    answer: { status: "success", algorithms: "19 items" },
  },
  {
    title: "shows its algorithms to no other caller",
    method: "GetCryptoInfo",
    rest: "GET /api/crypto-info",
    request: {},
    refusal: { code: "UNAUTHENTICATED", reason: "TOKEN_MISSING" },
  },
];

export const rows: readonly Row[] = [
  ...pqc.map((row): Row => ({ ...row, service: "pqc.PqcService" })),
  ...tokens.map((row): Row => ({ ...row, service: "pqc.TokenService" })),
];

function describeKems() {
  const sets = [
    ["ML-KEM-512", "FIPS 203", 1, 800, 1632, 768],
    ["ML-KEM-768", "FIPS 203", 3, 1184, 2400, 1088],
    ["ML-KEM-1024", "FIPS 203", 5, 1568, 3168, 1568],
    ["X-Wing", "draft-connolly-cfrg-xwing-kem", 1, 1216, 32, 1120],
  ] as const;
  return sets.map(([name, standard, nistLevel, publicKeyBytes, secretKeyBytes, ciphertextBytes]) => ({
    name,
    standard,
    nistLevel,
    category: "KEM",
    publicKeyBytes,
    secretKeyBytes,
    ciphertextBytes,
    sharedSecretBytes: 32,
  }));
}

/** How the fields that differ from call to call are written in the table. */
const settlers: Readonly<Record<string, (value: unknown) => unknown>> = {
  signature: describeBytes,
  publicKey: describeBytes,
  encapsulatedKey: describeBytes,
  sharedSecret: describeBytes,
  decapsulationKey: describeBytes,
  decapsulationKeySeed: describeBytes,
  pub: describeBytes,
  kid: describeBytes,
  publicKeyPem: (value) => (/^-----BEGIN PUBLIC KEY-----\n/.test(String(value)) ? "PEM" : value),
  token: (value) => (/^[\w-]+\.[\w-]+\.[\w-]{4412}$/.test(String(value)) ? "JWT" : value),
  expiresAt: describeTime,
  issuedAt: describeTime,
  message: describeText,
  reason: describeText,
  // Depends on whether the native provider is built here.
  cryptoProvider: describeText,
};

/** Replaces in an answer what differs from call to call: bytes by their length, times and texts by a word. */
export function settle(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.length === 19 ? "19 items" : answer.map(settle);
  if (typeof answer !== "object" || answer === null) return answer;
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [name, (settlers[name] ?? settle)(value)]),
  );
}

function describeBytes(value: unknown): string {
  return `${Buffer.from(String(value), "base64").length} bytes`;
}

function describeTime(value: unknown): unknown {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(String(value)) ? "time" : value;
}

function describeText(value: unknown): unknown {
  return typeof value === "string" && value !== "" ? "text" : value;
}
