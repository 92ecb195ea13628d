import {
  calculateJwkThumbprint,
  createLocalJWKSet,
  exportJWK,
  generateKeyPair,
  importJWK,
  jwtVerify,
  SignJWT,
} from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeBase64url, encodeBase64url } from "../../src/crypto/base64url.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { readPublicJwks, toPublicJwk } from "../../src/crypto/jwk.ts";
import { type JwtVerification, maxTokenCharacters, signJwt, verifyJwt } from "../../src/crypto/jwt.ts";
import { type JsonObject, type JsonValue, parseJsonObject } from "../../src/crypto/strict-json.ts";
import { importPublicJwk } from "./import-jwk.ts";
import { refusal } from "./refusal.ts";

/** Seconds since 1970. Tokens in these tests are valid for one hour from then. */
const issuedAt = 1_800_000_000;
const claims = { sub: "alice", iat: issuedAt, exp: issuedAt + 3600 };
const at = (seconds: number) => new Date(seconds * 1000);
const provider = await createCryptoProvider("openssl");

afterAll(() => provider.close());
const keyPair = await provider.generateKeyPair("ML-DSA-65");
const jwk = toPublicJwk(keyPair.publicKey);
const trusted = new Map([[jwk.kid, keyPair.publicKey]]);
const verify = (token: string, seconds = issuedAt) => verifyJwt(provider, trusted, token, at(seconds));
const reasonOf = (verification: JwtVerification) => (verification.ok ? undefined : verification.reason);
const encode = (text: string) =>
  new TextEncoder().encode(text).toBase64({ alphabet: "base64url", omitPadding: true });

/** A correctly signed token with any header and payload, given as JSON text. */
async function forge(header: string, payload = JSON.stringify(claims)): Promise<string> {
  const signingInput = `${encode(header)}.${encode(payload)}`;
  const signature = await provider.sign(keyPair.secretKey, new TextEncoder().encode(signingInput));
  return `${signingInput}.${signature.toBase64({ alphabet: "base64url", omitPadding: true })}`;
}

const header = (more: object = {}) => JSON.stringify({ alg: "ML-DSA-65", typ: "JWT", kid: jwk.kid, ...more });

describe("a token", () => {
  it("carries alg, typ, kid and the issuer's members, and verifies", async () => {
    const signed = { keyId: jwk.kid, header: { use: "grpc" }, payload: claims };
    const token = await signJwt(provider, keyPair.secretKey, signed);
    const header = { alg: "ML-DSA-65", typ: "JWT", kid: jwk.kid, use: "grpc" };
    expect(await verify(token)).toEqual({ ok: true, type: "JWT", header, payload: claims });
  });

  it("verifies with jose, using only the key set", async () => {
    const token = await signJwt(provider, keyPair.secretKey, { keyId: jwk.kid, payload: claims });
    const keySet = createLocalJWKSet({ keys: [{ ...jwk }] });
    const { payload, protectedHeader } = await jwtVerify(token, keySet, { currentDate: at(issuedAt) });
    expect(payload).toEqual(claims);
    expect(protectedHeader).toEqual({ alg: "ML-DSA-65", typ: "JWT", kid: jwk.kid });
  });

  it("from jose verifies here", async () => {
    const { publicKey, privateKey } = await generateKeyPair("ML-DSA-65", { extractable: true });
    const imported = importPublicJwk(provider, { ...(await exportJWK(publicKey)) });
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: "ML-DSA-65", typ: "JWT", kid: imported.keyId })
      .sign(privateKey);
    const keys = new Map([[imported.keyId, imported.publicKey]]);
    expect(await verifyJwt(provider, keys, token, at(issuedAt))).toMatchObject({ ok: true, payload: claims });
  });

  it.each([
    ["in its first second", 0, undefined],
    ["in its last second", 3599, undefined],
    ["at the second of expiry", 3600, "EXPIRED"],
    ["5 seconds before it was issued, by the clock of another server", -5, undefined],
    ["6 seconds before it was issued", -6, "NOT_YET_VALID"],
  ] as const)("%s", async (_name, secondsAfterIssue, reason) => {
    const token = await signJwt(provider, keyPair.secretKey, { keyId: jwk.kid, payload: claims });
    expect(reasonOf(await verify(token, issuedAt + secondsAfterIssue))).toBe(reason);
  });

  it("is not valid earlier than 5 seconds before nbf", async () => {
    const payload = { ...claims, nbf: issuedAt + 60 };
    const token = await signJwt(provider, keyPair.secretKey, { keyId: jwk.kid, payload });
    expect(reasonOf(await verify(token, issuedAt + 54))).toBe("NOT_YET_VALID");
    expect(reasonOf(await verify(token, issuedAt + 55))).toBeUndefined();
  });
});

describe("an access token (RFC 9068)", () => {
  it("can be signed with ML-DSA-44 too, and states its type", async () => {
    const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-44");
    const token = await signJwt(provider, secretKey, { keyId: "k", type: "at+jwt", payload: claims });
    const result = await verifyJwt(provider, new Map([["k", publicKey]]), token, at(issuedAt));
    expect(result).toMatchObject({ ok: true, type: "at+jwt", header: { alg: "ML-DSA-44", typ: "at+jwt" } });
  });

  it.each(["AT+JWT", "application/at+jwt"])("may have the typ %s", async (typ) => {
    const result = await verify(await forge(header({ typ })));
    expect(result).toMatchObject({ ok: true, type: "at+jwt" });
  });
});

describe("verifyJwt rejects as WRONG_ALGORITHM", () => {
  const others = ["none", "None", "HS256", "ES256", "ML-DSA-44", "ML-DSA-87", "ml-dsa-65"];
  it.each([...others, "", null, ["ML-DSA-65"], undefined])("alg %j", async (alg) => {
    expect(reasonOf(await verify(await forge(header({ alg }))))).toBe("WRONG_ALGORITHM");
  });

  it("alg none with an empty signature", async () => {
    const token = `${encode('{"alg":"none","typ":"JWT"}')}.${encode(JSON.stringify(claims))}.`;
    expect(reasonOf(await verify(token))).toBe("WRONG_ALGORITHM");
  });

  it("a trusted key that is not ML-DSA-65", async () => {
    const { publicKey } = await provider.generateKeyPair("ML-DSA-87");
    const token = await forge(header());
    const verification = await verifyJwt(provider, new Map([[jwk.kid, publicKey]]), token, at(issuedAt));
    expect(reasonOf(verification)).toBe("WRONG_ALGORITHM");
  });
});

describe("verifyJwt rejects as MALFORMED a correctly signed token with", () => {
  const headers: Record<string, string> = {
    "a different typ": header({ typ: "dpop+jwt" }),
    "a typ that only starts with at+jwt": header({ typ: "at+jwtx" }),
    "no typ": header({ typ: undefined }),
    "no kid": header({ kid: undefined }),
    crit: header({ crit: ["exp"] }),
    b64: header({ b64: false }),
    jwk: header({ jwk: { ...jwk } }),
    jku: header({ jku: "https://attacker.example/jwks" }),
    x5u: header({ x5u: "https://attacker.example/x5u" }),
    x5c: header({ x5c: ["MII"] }),
    "a duplicate header member": header().replace("{", '{"alg":"ML-DSA-65",'),
    "an empty header": "",
  };
  it.each(Object.entries(headers))("%s", async (_name, text) => {
    expect(reasonOf(await verify(await forge(text)))).toBe("MALFORMED");
  });

  const payload = (more: object) => JSON.stringify({ ...claims, ...more });
  const payloads: Record<string, string> = {
    "no sub": payload({ sub: undefined }),
    "an empty sub": payload({ sub: "" }),
    "no exp": payload({ exp: undefined }),
    "an exp that is a string": payload({ exp: String(claims.exp) }),
    "an exp with a fraction": payload({ exp: claims.exp + 0.5 }),
    "a negative exp": payload({ exp: -1 }),
    "an exp beyond year 9999": payload({ exp: 1e15 }),
    "an iat that is a string": payload({ iat: "now" }),
    "an nbf that is a boolean": payload({ nbf: true }),
    "a duplicate claim": payload({}).replace("{", '{"sub":"mallory",'),
    "an empty payload": "",
  };
  it.each(Object.entries(payloads))("%s", async (_name, text) => {
    expect(reasonOf(await verify(await forge(header(), text)))).toBe("MALFORMED");
  });
});

describe("verifyJwt rejects as MALFORMED", () => {
  const changes: Record<string, (token: string) => string> = {
    "an empty string": () => "",
    "two parts": (token) => token.slice(0, token.lastIndexOf(".")),
    "four parts": (token) => `${token}.`,
    padding: (token) => `${token}=`,
    "a line break": (token) => `${token}\n`,
    "more characters than the limit": (token) => token.padEnd(maxTokenCharacters + 1, "A"),
  };

  it.each(Object.entries(changes))("%s", async (_name, change) => {
    const token = await forge(header());
    expect(reasonOf(await verify(token))).toBeUndefined();
    expect(reasonOf(await verify(change(token)))).toBe("MALFORMED");
  });
});

describe("verifyJwt rejects", () => {
  it("a kid that is not trusted as UNKNOWN_KEY", async () => {
    const token = await forge(header({ kid: "somebody-else" }));
    expect(reasonOf(await verify(token))).toBe("UNKNOWN_KEY");
  });

  const other = encode(JSON.stringify({ ...claims, sub: "root" }));
  const changes: Record<string, (token: string) => string> = {
    "a different payload": (token) => token.replace(/\.[^.]*\./, `.${other}.`),
    "no signature": (token) => token.slice(0, token.lastIndexOf(".") + 1),
    "a short signature": (token) => token.slice(0, -4),
    "a different token's signature": (token) => `${token.slice(0, -40)}${"A".repeat(40)}`,
  };

  it.each(Object.entries(changes))("%s as BAD_SIGNATURE", async (_name, change) => {
    const token = change(await forge(header()));
    expect(reasonOf(await verify(token))).toBe("BAD_SIGNATURE");
  });

  it("a token that was signed with a context as BAD_SIGNATURE", async () => {
    const signingInput = `${encode(header())}.${encode(JSON.stringify(claims))}`;
    const options = { context: Uint8Array.of(1) };
    const signature = await provider.sign(keyPair.secretKey, new TextEncoder().encode(signingInput), options);
    const token = `${signingInput}.${signature.toBase64({ alphabet: "base64url" })}`;
    expect(reasonOf(await verify(token))).toBe("BAD_SIGNATURE");
  });
});

describe("signJwt rejects", () => {
  const sign = (input: { header?: JsonObject; payload?: JsonObject }) =>
    signJwt(provider, keyPair.secretKey, { keyId: jwk.kid, payload: claims, ...input } as never);

  it.each(["alg", "typ", "kid", "crit", "b64", "jwk", "jku", "x5u"])("the header member %s", async (name) => {
    expect(await refusal(() => sign({ header: { [name]: "x" } }))).toBe("INVALID_ARGUMENT");
  });

  it.each([
    ["no sub", { exp: 1 }],
    ["no exp", { sub: "alice" }],
    ["times in milliseconds", { sub: "alice", exp: issuedAt * 1000 }],
    ["a fraction of a second", { sub: "alice", exp: 1.5 }],
  ])("a payload with %s", async (_name, payload) => {
    expect(await refusal(() => sign({ payload }))).toBe("INVALID_ARGUMENT");
  });

  it("a key that is not for tokens", async () => {
    const { secretKey } = await provider.generateKeyPair("ML-DSA-87");
    const attempt = () => signJwt(provider, secretKey, { keyId: "k", payload: claims });
    expect(await refusal(attempt)).toBe("INVALID_ARGUMENT");
  });
});

afterAll(() => provider.close());

describe("a JSON Web Key", () => {
  it.each(["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"] as const)(
    "for %s has the thumbprint that jose computes",
    async (algorithm) => {
      const { publicKey } = await provider.generateKeyPair(algorithm);
      const published = toPublicJwk(publicKey);
      expect(published).toMatchObject({ kty: "AKP", alg: algorithm, use: "sig" });
      expect(await calculateJwkThumbprint({ ...published })).toBe(published.kid);
      expect(await importJWK({ ...published })).toMatchObject({ type: "public" });
      expect(decodeBase64url(published.pub)).toEqual(publicKey.exportRaw());
    },
  );

  it.each(["SLH-DSA-SHA2-128f", "ML-KEM-768", "ECDSA-P256"] as const)(
    "is not standardized for %s",
    async (algorithm) => {
      const { publicKey } = await provider.generateKeyPair(algorithm);
      expect(await refusal(() => toPublicJwk(publicKey))).toBe("UNSUPPORTED");
    },
  );
});

describe("a parsed public JWK", () => {
  let jwk: Readonly<Record<string, JsonValue>>;
  beforeAll(async () => {
    const { publicKey } = await provider.generateKeyPair("ML-DSA-65");
    jwk = { ...toPublicJwk(publicKey) };
  });
  const read = (members: Readonly<Record<string, JsonValue>>) => readPublicJwks({ ...jwk, ...members });

  it("is the same key, even with key operations and unknown members", () => {
    for (const more of [{}, { key_ops: ["verify"] }, { key_ops: ["verify", "x-other"], x5c: ["AAAA"] }])
      expect(read(more)).toMatchObject([{ algorithm: "ML-DSA-65" }]);
  });

  it.each<[string, Readonly<Record<string, JsonValue>>, string]>([
    ["a different type", { kty: "OKP" }, 'kty of the JWK must be "AKP"'],
    ["the algorithm of a shorter key", { alg: "ML-DSA-44" }, "1312 bytes in base64url"],
    ["a JOSE algorithm other than ML-DSA", { alg: "ES256" }, "alg of the JWK must be one of ML-DSA-44"],
    ["a public key in hexadecimal", { pub: "00".repeat(1952) }, "1952 bytes in base64url"],
    ["an encryption use", { use: "enc" }, 'use of the JWK must be "sig"'],
    ["a use that is a list", { use: ["sig"] }, 'use of the JWK must be "sig"'],
    ["other operations", { key_ops: ["encrypt"] }, 'key_ops of the JWK must include "verify"'],
    ["an operation that is not a string", { key_ops: ["verify", 1] }, "key_ops of the JWK must be a list"],
    ["a string as the operations", { key_ops: "verify" }, "key_ops of the JWK must be a list"],
    ["no algorithm", { alg: null }, "alg of the JWK must be one of ML-DSA-44"],
    ["a duplicate operation", { key_ops: ["verify", "verify"] }, "key_ops of the JWK must be a list"],
    ["its secret key", { priv: "AAAA" }, "the JWK has priv: it is a secret key"],
    ["a null secret key", { priv: null }, "the JWK has priv: it is a secret key"],
  ])("is rejected with %s", (_, members, message) => {
    expect(() => read(members)).toThrow(message);
    // A set skips keys of other types and uses (RFC 7517, section 5), but not a broken ML-DSA key.
    const isOther =
      "kty" in members || members.alg === "ES256" || members.alg === null || members.use === "enc";
    const set = () => readPublicJwks({ keys: [{ ...jwk, ...members }, { ...jwk }] });
    if (isOther) expect(set()).toHaveLength(1);
    else expect(set).toThrow("key 1 of the JWK set");
  });
});

const parse = (text: string) => parseJsonObject(new TextEncoder().encode(text));

describe("parseJsonObject", () => {
  it.each([
    '{"a":1,"b":{"a":1}}',
    '{"a":["a","a",{"a":1}],"b":"a"}',
    '{"a":"\\\\",":":"{\\"a\\":1,\\"a\\":1}"}',
    ' { "a" : null , "b" : [ ] } ',
    "{}",
  ])("parses %s as JSON.parse does", (text) => {
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  it.each([
    ["a duplicate name", '{"a":1,"a":1}'],
    ["a duplicate name with others between", '{"a":1,"b":{"c":[]},"a":1}'],
    ["a duplicate name with quotes", '{"\\"":1,"\\"":1}'],
    ["an array", "[]"],
    ["null", "null"],
    ["nothing", ""],
    ["text after the object", "{} {}"],
    ["a byte order mark", "\ufeff{}"],
  ])("rejects %s", (_name, text) => {
    expect(parse(text)).toBeUndefined();
  });

  it("rejects bytes that are not UTF-8", () => {
    expect(parseJsonObject(Uint8Array.of(0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d))).toBeUndefined();
  });

  it("stops at the token limit, and counts no tokens inside strings", () => {
    const count = (text: string, maxTokens: number) =>
      parseJsonObject(new TextEncoder().encode(text), maxTokens);
    // Six tokens: {, "a", :, [, ] and }.
    expect(count('{"a":[1]}', 6)).toEqual({ a: [1] });
    expect(count('{"a":[1]}', 5)).toBeUndefined();
    expect(count('{"a":"\\"[[[{{{,,,:::"}', 5)).toEqual({ a: '"[[[{{{,,,:::' });
  });

  it("keeps a member named __proto__ as a member", () => {
    const parsed = parse('{"__proto__":{"a":1}}');
    expect(Object.keys(parsed ?? {})).toEqual(["__proto__"]);
    expect(parsed?.a).toBeUndefined();
  });
});

describe("base64url", () => {
  it.each([0, 1, 2, 3, 4, 255])("decodes the %i bytes that it encoded, without padding", (length) => {
    const bytes = crypto.getRandomValues(new Uint8Array(length));
    const text = encodeBase64url(bytes);
    expect(text).toMatch(/^[A-Za-z0-9_-]*$/);
    expect(decodeBase64url(text)).toEqual(bytes);
  });

  it.each(["=", "AA==", "AA=", "A", "AB", "AAB", " AA", "AA\n", "+_", "/_", "Ä", "AA.AA"])(
    "rejects %j",
    (text) => {
      expect(decodeBase64url(text)).toBeUndefined();
    },
  );
});
