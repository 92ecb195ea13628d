import {
  createDecipheriv,
  createHash,
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  verify,
  X509Certificate,
} from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Worker } from "node:worker_threads";
import type { CallOptions } from "@connectrpc/connect";
import { ml_kem768_x25519 } from "@noble/post-quantum/hybrid.js";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { ml_kem768 } from "@noble/post-quantum/ml-kem.js";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { toPublicJwk } from "../../src/crypto/jwk.ts";
import { signJwt } from "../../src/crypto/jwt.ts";
import {
  type HandshakeInput,
  HandshakeRecorder,
  type RecordedHandshake,
} from "../../src/services/pqc/record-handshake.ts";
import { describeRefusal, failureOf, refusal } from "../support/refusal.ts";
import { fieldInvalid, invalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import xWingDraft from "../vectors/x-wing.json" with { type: "json" };
import { type PqcServer, startPqcServer } from "./pqc-server.ts";

/** A whole second, so that times in tokens match the clock exactly. */
const startMs = Date.UTC(2026, 0, 1, 12, 0, 0);
const lifetimeMs = 3_600_000;

let nowMs = startMs;
const dataDir = makeTemporaryDirectory(afterAll);
let server: PqcServer;
let pqc: PqcServer["pqc"];
let tokens: PqcServer["tokens"];
beforeAll(async () => {
  server = await startPqcServer(dataDir, () => new Date(nowMs));
  ({ pqc, tokens } = server);
});
afterAll(() => server.close());
beforeEach(() => {
  nowMs = startMs;
});

describe.each(["PqcService", "TokenService"] as const)("%s.IssueToken", (name) => {
  const issue = (request: { username?: string; password?: string }) =>
    name === "PqcService" ? pqc.issueToken(request) : tokens.issueToken(request);

  it("issues a token of about 4,500 characters that expires after 3600 seconds", async () => {
    const { token, expiresAt } = await issue({ username: "ada" });
    expect(token.length).toBeGreaterThan(4400);
    expect(token.length).toBeLessThan(4700);
    expect(expiresAt).toMatchObject({ seconds: BigInt((startMs + lifetimeMs) / 1000), nanos: 0 });
  });

  it("writes exactly the specified header, sub, iat in whole seconds, and exp = iat + 3600", async () => {
    nowMs = startMs + 999;
    // The server is open: it accepts any password.
    const { token } = await issue({ username: "Ada Lovelace ♥", password: "secret" });
    const [key] = (await tokens.getJwks({})).keys;
    const iat = startMs / 1000;
    expect(takeApart(token)).toEqual({
      header: {
        ...{ alg: "ML-DSA-65", typ: "JWT", kid: key?.kid },
        ...(name === "PqcService" && { use: "grpc" }),
      },
      payload: { sub: "Ada Lovelace ♥", iat, exp: iat + 3600 },
    });
  });
});

describe.each(["PqcService", "TokenService"] as const)("%s.GetJwks", (name) => {
  it("lists the issuing key in RFC 9964 form, with its RFC 7638 thumbprint as kid", async () => {
    const { keys } = await (name === "PqcService" ? pqc.getJwks({}) : tokens.getJwks({}));
    const { pub = "" } = keys[0] ?? {};
    expect(Buffer.from(pub, "base64url")).toHaveLength(1952);
    const canonical = `{"alg":"ML-DSA-65","kty":"AKP","pub":"${pub}"}`;
    const kid = createHash("sha256").update(canonical).digest("base64url");
    expect(keys).toMatchObject([{ kty: "AKP", alg: "ML-DSA-65", pub, kid, use: "sig" }]);
  });
});

describe("TokenService.VerifyToken with a token", () => {
  it.each(["PqcService", "TokenService"])(
    "accepts a token from %s, with its subject and expiry time",
    async (name) => {
      const { token } = await (name === "PqcService" ? pqc : tokens).issueToken({ username: "ada" });
      const answer = await tokens.verifyToken({ token });
      expect(answer).toMatchObject({ valid: true, subject: "ada", roles: ["user"] });
      expect(answer.expiresAt?.seconds).toBe(BigInt((startMs + lifetimeMs) / 1000));
      const use = name === "PqcService" ? "grpc" : undefined;
      expect([answer.use, answer.reason]).toEqual([use, undefined]);
    },
  );

  it("says why a token is not valid, but neither its subject nor its expiry time", async () => {
    const token = await adasToken();
    expect(await tokens.verifyToken({ token: "hello" })).toMatchObject(notValid(/not a JWT/));
    const forged = await tokens.verifyToken({ token: forge(token) });
    expect(forged).toMatchObject(notValid(/signature/));
    expect([forged.subject, forged.expiresAt]).toEqual([undefined, undefined]);
    nowMs = startMs + lifetimeMs;
    expect(await tokens.verifyToken({ token })).toMatchObject(notValid(/expired/));
  });
});

describe("TokenService.VerifyToken with a signature", () => {
  const data = Buffer.from("hello");
  const { publicKey, secretKey } = ml_dsa65.keygen();
  const signature = ml_dsa65.sign(data, secretKey);

  it("accepts a valid signature, and says why another is not", async () => {
    const answer = await tokens.verifyToken({ data, signature, publicKey });
    expect(answer.valid).toBe(true);
    expect([answer.reason, answer.subject, answer.expiresAt]).toEqual([undefined, undefined, undefined]);
    const changed = await tokens.verifyToken({ data: Buffer.from("hallo"), signature, publicKey });
    expect(changed).toMatchObject(notValid(/signature/));
  });

  it.each([
    ["nothing", {}],
    ["a token and a signature", { token: "x", data, signature, publicKey }],
    ["data alone", { data }],
    ["no public key", { data, signature }],
    ["no data", { signature, publicKey }],
    ["two public keys", { data, signature, publicKey, publicKeyPem: "x" }],
  ])("rejects %s", async (_what, request) => {
    expect(await refusal(tokens.verifyToken(request))).toMatchObject(fieldInvalid);
  });
});

describe("the Authorization header", () => {
  const call = (authorization: string) => tokens.getSecureData({}, withAuthorization(authorization));

  it.each(["Bearer", "bearer", "BEARER", "Bearer "])("accepts a valid token after %j", async (scheme) => {
    expect((await call(`${scheme} ${await adasToken()}`)).status).toBe("success");
  });

  it.each([
    ["another scheme", async () => "Basic YWRhOmFkYQ=="],
    ["only the scheme", async () => "Bearer"],
    ["a token without a scheme", adasToken],
    ["two tokens", async () => `Bearer ${await adasToken()} ${await adasToken()}`],
    ["text that is not a token", async () => "Bearer hello"],
  ])("is rejected with %s, and the error says how to authenticate", async (_what, make) => {
    const error = await failureOf(call(await make()));
    expect(describeRefusal(error)).toMatchObject({ reason: "TOKEN_MALFORMED" });
    expect(error.metadata.get("www-authenticate")).toBe('Bearer error="invalid_token"');
  });
});

describe("TokenService.GetSecureData", () => {
  it("returns the contents of the caller's token", async () => {
    const answer = await tokens.getSecureData({}, withAuthorization(`Bearer ${await adasToken()}`));
    const [issuedAt, expiresAt] = [startMs, startMs + lifetimeMs].map((ms) => ({
      seconds: BigInt(ms / 1000),
    }));
    expect(answer).toMatchObject({ subject: "ada", issuedAt, expiresAt });
    expect(answer.message).toContain("ada");
  });

  it("accepts a PqcService token too", async () => {
    const { token } = await pqc.issueToken({ username: "grace" });
    const answer = await tokens.getSecureData({}, withAuthorization(`Bearer ${token}`));
    expect(answer.subject).toBe("grace");
  });
});

describe("TokenService.GetCryptoInfo", () => {
  it("lists the same parameter sets as GetAlgorithmInfo", async () => {
    const { algorithms } = await tokens.getCryptoInfo({}, withAuthorization(`Bearer ${await adasToken()}`));
    expect(algorithms).toEqual((await pqc.getAlgorithmInfo({})).algorithms);
  });
});

function withAuthorization(authorization: string): CallOptions {
  return { headers: { authorization } };
}

async function adasToken(): Promise<string> {
  return (await tokens.issueToken({ username: "ada" })).token;
}

function takeApart(token: string) {
  const [header = "", payload = ""] = token.split(".");
  return {
    header: JSON.parse(Buffer.from(header, "base64url").toString()),
    payload: JSON.parse(Buffer.from(payload, "base64url").toString()),
  };
}

/** Replaces a token's subject but keeps its signature. */
function forge(token: string): string {
  const [header, , signature] = token.split(".");
  const payload = JSON.stringify({ ...takeApart(token).payload, sub: "admin" });
  return [header, Buffer.from(payload).toString("base64url"), signature].join(".");
}

function notValid(reason: RegExp) {
  return { status: "success", valid: false, reason: expect.stringMatching(reason) };
}

describe("the issuing key", () => {
  it("is in the store only in sealed form", async () => {
    const dataDir = makeTemporaryDirectory();
    await visit(dataDir, startMs, async ({ tokens }) => tokens.getHealth({}));
    const database = new DatabaseSync(join(dataDir, "qsp.db"));
    onTestFinished(() => database.close());
    const key = database.prepare("select * from issuer_keys").get() ?? {};
    const publicBytes = Object.values(key).filter((value) => value instanceof Uint8Array);
    expect(publicBytes).toEqual([key.public_key]);
    const secret = database
      .prepare("select * from sealed_secrets where identity = ?")
      .get(`issuer_keys/${key.key_id}/seed`);
    // 12 bytes of nonce, 32 of seed or key, 16 of tag.
    expect(secret?.ciphertext).toHaveLength(60);
    expect(secret?.wrapped_data_key).toHaveLength(60);
  });

  it("stays in the key set for 3600 seconds after retirement, across restarts, and its tokens stay valid", async () => {
    const dataDir = makeTemporaryDirectory();
    const { token, keys } = await visit(dataDir, startMs, async ({ tokens }) => ({
      token: (await tokens.issueToken({ username: "ada" })).token,
      keys: (await tokens.getJwks({})).keys,
    }));
    await visit(dataDir, startMs + 1000, (server) => server.rotateKey());
    const [newKeys, answer, newToken] = await visit(dataDir, startMs + 2000, async ({ tokens }) => [
      (await tokens.getJwks({})).keys,
      await tokens.verifyToken({ token }),
      (await tokens.issueToken({ username: "grace" })).token,
    ]);
    const [newKey, ...retired] = newKeys;
    expect([retired, answer.valid]).toEqual([keys, true]);
    const header = Buffer.from(newToken.split(".")[0] ?? "", "base64url").toString();
    expect(JSON.parse(header)).toMatchObject({ kid: newKey?.kid });

    const laterMs = startMs + 2000 + lifetimeMs;
    const later = await visit(dataDir, laterMs, ({ tokens }) => tokens.getJwks({}));
    expect(later.keys).toEqual([newKey]);
  });

  it("leaves the key set of a running server once its last token has expired", async () => {
    const dataDir = makeTemporaryDirectory();
    await visit(dataDir, startMs + 1000, (server) => server.rotateKey());
    let nowMs = startMs + 2000;
    const server = await startPqcServer(dataDir, () => new Date(nowMs));
    onTestFinished(() => server.close());
    expect((await server.tokens.getJwks({})).keys).toHaveLength(2);
    nowMs += lifetimeMs;
    expect((await server.tokens.getJwks({})).keys).toHaveLength(1);
  });
});

describe("an inserted key in the issuer's table", () => {
  const insertKey = (dataDir: string, row: Record<string, string | number | Uint8Array | null>): void => {
    const database = new DatabaseSync(join(dataDir, "qsp.db"));
    const names = Object.keys(row);
    database
      .prepare(`insert into issuer_keys (${names}) values (${names.map(() => "?")})`)
      .run(...Object.values(row));
    database.close();
  };

  it.each([
    ["as if it signed", null, "0".repeat(64)],
    ["as if it had just been retired", startMs, "0".repeat(64)],
    ["without a tag", null, ""],
  ])("%s is not in the key set, and its tokens are rejected", async (_how, retiredAtMs, tag) => {
    const dataDir = makeTemporaryDirectory();
    const server = await startPqcServer(dataDir, () => new Date(startMs));
    const { token } = await server.tokens.issueToken({ username: "ada" });
    const { keys } = await server.tokens.getJwks({});
    const { publicKey, secretKey } = await server.provider.generateKeyPair("ML-DSA-65");
    const { kid } = toPublicJwk(publicKey);
    const key = { key_id: kid, algorithm: "ML-DSA-65", public_key: publicKey.exportRaw() };
    const times = { created_at_ms: startMs, retired_at_ms: retiredAtMs };
    insertKey(dataDir, { ...key, ...times, record_tag: tag });
    const [iat, exp] = [startMs / 1000, startMs / 1000 + 3600];
    const payload = { sub: "ada", iat, exp };
    const forged = await signJwt(server.provider, secretKey, { keyId: kid, header: {}, payload });
    expect((await server.tokens.getJwks({})).keys).toEqual(keys);
    expect(await server.tokens.verifyToken({ token: forged })).toMatchObject({ valid: false });
    expect(await server.tokens.verifyToken({ token })).toMatchObject({ valid: true });
    await server.rotateKey();
    expect((await server.tokens.getJwks({})).keys.map((key) => key.kid)).not.toContain(kid);
    await server.close();
    const keysLater = await visit(dataDir, startMs, async ({ tokens }) => (await tokens.getJwks({})).keys);
    expect(keysLater.map((key) => key.kid)).not.toContain(kid);
  });
});

/** Opens a server on a data directory at a given time, queries it, and closes it. */
async function visit<T>(dataDir: string, nowMs: number, ask: (server: PqcServer) => Promise<T>): Promise<T> {
  const server = await startPqcServer(dataDir, () => new Date(nowMs));
  try {
    return await ask(server);
  } finally {
    await server.close();
  }
}

describe("the health of both services", () => {
  it("is DOWN when signing is impossible", async () => {
    const server = await startPqcServer(makeTemporaryDirectory());
    onTestFinished(() => server.close());
    await server.provider.close();
    const isDown = { status: "success", serviceStatus: "DOWN" };
    expect(await server.pqc.getHealth({})).toMatchObject(isDown);
    expect(await server.tokens.getHealth({})).toMatchObject({ ...isDown, cryptoProviderActive: false });
  });
});

const data = Buffer.from("hello");

/** FIPS 204, table 2; FIPS 205, table 2: name, public key, secret key and signature lengths, category. */
const signatureSets = [
  ["ML-DSA-44", 1312, 2560, 2420, 2],
  ["ML-DSA-65", 1952, 4032, 3309, 3],
  ["ML-DSA-87", 2592, 4896, 4627, 5],
  ["SLH-DSA-SHA2-128s", 32, 64, 7856, 1],
  ["SLH-DSA-SHA2-128f", 32, 64, 17088, 1],
  ["SLH-DSA-SHA2-192s", 48, 96, 16224, 3],
  ["SLH-DSA-SHA2-192f", 48, 96, 35664, 3],
  ["SLH-DSA-SHA2-256s", 64, 128, 29792, 5],
  ["SLH-DSA-SHA2-256f", 64, 128, 49856, 5],
  ["SLH-DSA-SHAKE-128s", 32, 64, 7856, 1],
  ["SLH-DSA-SHAKE-128f", 32, 64, 17088, 1],
  ["SLH-DSA-SHAKE-192s", 48, 96, 16224, 3],
  ["SLH-DSA-SHAKE-192f", 48, 96, 35664, 3],
  ["SLH-DSA-SHAKE-256s", 64, 128, 29792, 5],
  ["SLH-DSA-SHAKE-256f", 64, 128, 49856, 5],
] as const;

/**
 * FIPS 203, tables 2 and 3; draft-connolly-cfrg-xwing-kem-11, sections 1.2 and 5.1: name, encapsulation key,
 * decapsulation key and ciphertext lengths, category.
 */
const kemSets = [
  ["ML-KEM-512", 800, 1632, 768, 1],
  ["ML-KEM-768", 1184, 2400, 1088, 3],
  ["ML-KEM-1024", 1568, 3168, 1568, 5],
  ["X-Wing", 1216, 32, 1120, 1],
] as const;

const nobleKems = { "ML-KEM-768": ml_kem768, "X-Wing": ml_kem768_x25519 };

describe("PqcService.SignData", () => {
  it.each(["", "ML-DSA-65", "SLH-DSA-SHAKE-128f"])(
    "signs with a new key of %j, ML-DSA-65 by default",
    async (algorithm) => {
      const [one, other] = await Promise.all([pqc.signData({ data, algorithm }), pqc.signData({ data })]);
      const { publicKey, publicKeyPem, signature } = one;
      expect(one.algorithm).toBe(algorithm || "ML-DSA-65");
      expect(publicKey).not.toEqual(other.publicKey);
      // Through the PEM and Node's own parser, so that both are checked.
      expect(verify(null, data, createPublicKey(publicKeyPem), signature)).toBe(true);
      const answer = await pqc.verifySignature({ data, algorithm, publicKey, signature });
      expect(answer.valid).toBe(true);
    },
  );

  it.each(["RSA", "ml-dsa-65", "ML-KEM-768", "ECDSA-P256", "ML-DSA-65 ", "constructor"])(
    "rejects the algorithm %j and lists the supported ones",
    async (algorithm) => {
      const error = await failureOf(pqc.signData({ data, algorithm }));
      for (const [name] of signatureSets) expect(error.rawMessage).toContain(name);
      expect(describeRefusal(error)).toEqual(invalid("algorithm"));
    },
  );
});

describe("PqcService.VerifySignature", () => {
  let signed: { data: Uint8Array; signature: Uint8Array; publicKey: Uint8Array };
  let publicKeyPem: string;
  beforeAll(async () => {
    const answer = await pqc.signData({ data });
    signed = { data, signature: answer.signature, publicKey: answer.publicKey };
    publicKeyPem = answer.publicKeyPem;
  });

  it("accepts the public key as PEM, but no other data", async () => {
    const whole = { ...signed, ...pem(publicKeyPem) };
    expect(await pqc.verifySignature(whole)).toMatchObject({ valid: true });
    const changed = { ...whole, data: Buffer.from("hallo") };
    expect(await pqc.verifySignature(changed)).toMatchObject({ status: "success", valid: false });
  });

  const ownPem = () => generateKeyPairSync("ml-dsa-65").privateKey.export({ type: "pkcs8", format: "pem" });
  const pem = (publicKeyPem: string) => ({ publicKey: new Uint8Array(), publicKeyPem });
  it.each<[string, () => object, object]>([
    ["a short signature", () => ({ signature: new Uint8Array(3308) }), wrongLength("signature")],
    ["a long signature", () => ({ signature: new Uint8Array(3310) }), wrongLength("signature")],
    ["a short public key", () => ({ publicKey: new Uint8Array(1951) }), wrongKey("publicKey")],
    ["no PEM", () => pem("hello"), wrongKey("publicKeyPem")],
    ["a private key", () => pem(String(ownPem())), wrongKey("publicKeyPem")],
    ["an unknown algorithm", () => ({ algorithm: "DSA" }), invalid("algorithm")],
    ["two public keys", () => ({ publicKeyPem }), fieldInvalid],
    ["no public key", () => ({ publicKey: new Uint8Array() }), fieldInvalid],
  ])("rejects %s", async (_what, makeChange, expected) => {
    const call = pqc.verifySignature({ ...signed, ...makeChange() });
    expect(await refusal(call)).toMatchObject(expected);
  });
});

describe("PqcService.ExchangeKeys", () => {
  describe.each(["ML-KEM-768", "X-Wing"] as const)("with %s", (algorithm) => {
    const noble = nobleKems[algorithm];

    it("returns a key pair and a ciphertext that yields the same secret", async () => {
      const answer = await pqc.exchangeKeys({ algorithm });
      expect(answer).toMatchObject({ algorithm, sharedSecretLength: 32 });
      const { secretKey, publicKey } = noble.keygen(Uint8Array.from(answer.decapsulationKeySeed ?? []));
      expect(Buffer.from(answer.publicKey)).toEqual(Buffer.from(publicKey));
      expect(Buffer.from(answer.decapsulationKey ?? [])).toEqual(Buffer.from(secretKey));
      const recovered = noble.decapsulate(answer.encapsulatedKey, secretKey);
      expect(Buffer.from(recovered)).toEqual(Buffer.from(answer.sharedSecret));
    });

    it("encapsulates to the caller's raw key and returns no secret key", async () => {
      const { publicKey, secretKey } = noble.keygen();
      const answer = await pqc.exchangeKeys({ algorithm, publicKey });
      expect(answer.decapsulationKey).toBeUndefined();
      expect(answer.decapsulationKeySeed).toBeUndefined();
      expect(Buffer.from(answer.publicKey)).toEqual(Buffer.from(publicKey));
      const recovered = noble.decapsulate(answer.encapsulatedKey, secretKey);
      expect(Buffer.from(recovered)).toEqual(Buffer.from(answer.sharedSecret));
    });
  });

  it("encapsulates to the PEM key from the X-Wing draft, and returns the same PEM", async () => {
    const { seed, publicKeyPem } = xWingDraft.example;
    const answer = await pqc.exchangeKeys({ algorithm: "X-Wing", publicKeyPem });
    expect(answer.publicKeyPem).toBe(publicKeyPem);
    expect(answer.decapsulationKey).toBeUndefined();
    const recovered = ml_kem768_x25519.decapsulate(answer.encapsulatedKey, Uint8Array.fromHex(seed));
    expect(Buffer.from(recovered)).toEqual(Buffer.from(answer.sharedSecret));
  });

  it("uses ML-KEM-768 by default, with a new pair and a new secret for every request", async () => {
    const [one, other] = await Promise.all([pqc.exchangeKeys({}), pqc.exchangeKeys({})]);
    expect(one.algorithm).toBe("ML-KEM-768");
    expect(one.publicKey).not.toEqual(other.publicKey);
    expect(one.sharedSecret).not.toEqual(other.sharedSecret);
  });

  it.each(["X25519", "ML-DSA-65", "ml-kem-768"])(
    "rejects the algorithm %j and lists the supported ones",
    async (algorithm) => {
      const error = await failureOf(pqc.exchangeKeys({ algorithm }));
      for (const [name] of kemSets) expect(error.rawMessage).toContain(name);
      expect(describeRefusal(error)).toEqual(invalid("algorithm"));
    },
  );

  it("rejects two public keys, a key of an impossible length, and the PEM of a signing key", async () => {
    const { publicKey, publicKeyPem } = await pqc.exchangeKeys({});
    const { publicKeyPem: pemOfSigner } = await pqc.signData({ data });
    for (const [request, expected] of [
      [{ publicKey, publicKeyPem }, fieldInvalid],
      [{ publicKey: publicKey.subarray(1) }, wrongKey("publicKey")],
      [{ publicKeyPem: pemOfSigner }, wrongKey("publicKeyPem")],
    ] as const)
      expect(await refusal(pqc.exchangeKeys(request))).toMatchObject(expected);
  });
});

describe("PqcService.GetAlgorithmInfo", () => {
  const kems = kemSets.map(([name, publicKeyBytes, secretKeyBytes, ciphertextBytes, nistLevel]) => ({
    name,
    standard: name === "X-Wing" ? "draft-connolly-cfrg-xwing-kem" : "FIPS 203",
    nistLevel,
    category: "KEM",
    publicKeyBytes,
    secretKeyBytes,
    ciphertextBytes,
    sharedSecretBytes: 32,
  }));
  const signatures = signatureSets.map(
    ([name, publicKeyBytes, secretKeyBytes, signatureBytes, nistLevel]) => ({
      name,
      standard: name.startsWith("ML-DSA") ? "FIPS 204" : "FIPS 205",
      nistLevel,
      category: "SIGNATURE",
      publicKeyBytes,
      secretKeyBytes,
      signatureBytes,
    }),
  );

  it.each([
    ["", [...kems, ...signatures]],
    ["ALL", [...kems, ...signatures]],
    ["KEM", kems],
    ["SIGNATURE", signatures],
  ])(
    "lists the parameter sets of category %j with the standards' values, in order",
    async (category, expected) => {
      const { algorithms } = await pqc.getAlgorithmInfo({ category });
      expect(algorithms.map(({ $typeName, ...info }) => info)).toEqual(expected);
    },
  );

  it("rejects an unknown category and lists the supported ones", async () => {
    const error = await failureOf(pqc.getAlgorithmInfo({ category: "kem" }));
    for (const name of ["ALL", "SIGNATURE", "KEM"]) expect(error.rawMessage).toContain(name);
    expect(describeRefusal(error)).toEqual(invalid("category"));
  });
});

/** Timeout in milliseconds for tests that start threads on busy machines. */
const timeout = 60_000;

/** What one record contains. */
interface Opened {
  readonly from: "client" | "server";
  /** ContentType (RFC 8446, section 5.1). */
  readonly type: number;
  readonly content: Buffer;
  readonly isPlain: boolean;
}

type Secrets = ReadonlyMap<string, Buffer>;

/** Reads a key log (RFC 9850), whose lines must belong to the ClientHello of this random. */
function readKeyLog(keyLog: string, clientRandom: Buffer): Secrets {
  const lines = keyLog
    .trimEnd()
    .split("\n")
    .map((line) => line.split(" "));
  expect(new Set(lines.map(([, random]) => random))).toEqual(new Set([clientRandom.toString("hex")]));
  return new Map(lines.map(([name = "", , secret = ""]) => [name, Buffer.from(secret, "hex")]));
}

/** HKDF-Expand-Label with an empty context, for outputs of one block (RFC 8446, section 7.1). */
function expandLabel(secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.of(0, length, name.length), name, Buffer.of(0)]);
  return createHmac("sha384", secret).update(info).update(Buffer.of(1)).digest().subarray(0, length);
}

/** Decrypts the records under one traffic secret, in order (RFC 8446, sections 5.2 and 5.3). */
function createOpener(secret: Buffer) {
  const key = expandLabel(secret, "key", 32);
  const iv = expandLabel(secret, "iv", 12);
  let sequence = 0;
  return (record: Buffer) => {
    const nonce = Buffer.from(iv);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ sequence++) >>> 0, 8);
    const decipher = createDecipheriv("aes-256-gcm", key, nonce).setAAD(record.subarray(0, 5));
    decipher.setAuthTag(record.subarray(-16));
    const inner = Buffer.concat([decipher.update(record.subarray(5, -16)), decipher.final()]);
    return { type: inner.at(-1) ?? 0, content: inner.subarray(0, -1) };
  };
}

/** Decrypts a recording. */
function openRecords({ records }: RecordedHandshake, secrets: Secrets): Opened[] {
  const openerOf = (name: string) => createOpener(secrets.get(name) ?? Buffer.alloc(0));
  const sides = {
    client: { open: openerOf("CLIENT_HANDSHAKE_TRAFFIC_SECRET"), next: openerOf("CLIENT_TRAFFIC_SECRET_0") },
    server: { open: openerOf("SERVER_HANDSHAKE_TRAFFIC_SECRET"), next: openerOf("SERVER_TRAFFIC_SECRET_0") },
  };
  return records.map(({ fromClient, bytes }) => {
    const record = Buffer.from(bytes);
    const from = fromClient ? "client" : "server";
    if (record[0] !== 23) return { from, type: record[0] ?? 0, content: record.subarray(5), isPlain: true };
    const side = sides[from];
    const opened = side.open(record);
    if (nameOf(opened) === "Finished") side.open = side.next;
    return { from, ...opened, isPlain: false };
  });
}

const messages: Readonly<Record<number, string>> = {
  1: "ClientHello",
  2: "ServerHello",
  4: "NewSessionTicket",
  8: "EncryptedExtensions",
  11: "Certificate",
  15: "CertificateVerify",
  20: "Finished",
};

function nameOf({ type, content }: Pick<Opened, "type" | "content">): string {
  if (type === 22) return messages[content[0] ?? 0] ?? "unknown message";
  if (type === 21) return `alert ${content.join(" ")}`;
  return type === 20 ? "change_cipher_spec" : (content.toString().split("\r\n")[0] ?? "");
}

/** The handshake messages up to, but not including, the one at an index: a transcript hash (section 4.4.1). */
function hashBefore(opened: readonly Opened[], index: number): Buffer {
  const handshake = opened.slice(0, index).filter(({ type }) => type === 22);
  return createHash("sha384")
    .update(Buffer.concat(handshake.map(({ content }) => content)))
    .digest();
}

const hex = (...numbers: number[]): string =>
  numbers.map((number) => number.toString(16).padStart(4, "0")).join("");

/** FIPS 203, table 3; RFC 7748, section 5; SEC 1, section 2.3.3. */
const groups = [
  { group: "X25519MLKEM768", name: "X25519MLKEM768", code: 0x11ec, client: 1184 + 32, server: 1088 + 32 },
  { group: "X25519", name: "x25519", code: 29, client: 32, server: 32 },
  { group: "P-384", name: "secp384r1", code: 24, client: 97, server: 97 },
] as const;
const certificates = [
  { certificate: "ECDSA-P256", scheme: 0x0403, digest: "sha256" },
  { certificate: "ML-DSA-65", scheme: 0x0905, digest: null },
] as const;
const rows = groups.flatMap((group) => certificates.map((certificate) => ({ ...group, ...certificate })));

describe.each(rows)("a recorded handshake with $group and $certificate", { timeout }, (row) => {
  let recording: RecordedHandshake;
  let opened: Opened[];
  let secrets: Secrets;
  const at = (name: string): number => opened.findIndex((one) => nameOf(one) === name);
  const contentOf = (name: string): Buffer => opened[at(name)]?.content ?? Buffer.alloc(0);

  beforeAll(async () => {
    const { group, certificate }: HandshakeInput = row;
    recording = await new HandshakeRecorder().record({ group, certificate });
    const hello = Buffer.from(recording.records[0]?.bytes ?? []);
    secrets = readKeyLog(recording.keyLog, hello.subarray(5 + 4 + 2, 5 + 4 + 2 + 32));
    opened = openRecords(recording, secrets);
  }, timeout);

  it("contains every record from ClientHello to close_notify, in order, and no tickets", () => {
    expect(opened.map((one) => `${one.from}: ${nameOf(one)}${one.isPlain ? " in the clear" : ""}`)).toEqual([
      "client: ClientHello in the clear",
      "server: ServerHello in the clear",
      "server: change_cipher_spec in the clear",
      "server: EncryptedExtensions",
      "server: Certificate",
      "server: CertificateVerify",
      "server: Finished",
      "client: change_cipher_spec in the clear",
      "client: Finished",
      "client: GET / HTTP/1.1",
      "server: HTTP/1.1 204 No Content",
      "server: alert 1 0",
      "client: alert 1 0",
    ]);
  });

  it("has one key share of the group in each direction, without a HelloRetryRequest", () => {
    const { code, client, server } = row;
    // ExtensionType key_share (RFC 8446, section 4.2.8): a list from the client, one entry from the server.
    const offered = hex(51, client + 6, client + 4, code, client);
    expect(contentOf("ClientHello").toString("hex")).toContain(offered);
    expect(contentOf("ServerHello").toString("hex")).toContain(hex(51, server + 4, code, server));
    expect(recording).toMatchObject({ group: row.name, cipherSuite: "TLS_AES_256_GCM_SHA384" });
  });

  it("has a certificate for a fixed name, and its key signed the transcript", () => {
    const certificate = new X509Certificate(recording.certificate);
    expect(certificate.checkHost("handshake.example")).toBe("handshake.example");
    expect(contentOf("Certificate").includes(certificate.raw)).toBe(true);
    const message = contentOf("CertificateVerify");
    expect(message.readUInt16BE(4)).toBe(row.scheme);
    const signature = message.subarray(8, 8 + message.readUInt16BE(6));
    // RFC 8446, section 4.4.3.
    const context = `${" ".repeat(64)}TLS 1.3, server CertificateVerify\0`;
    const signed = Buffer.concat([Buffer.from(context), hashBefore(opened, at("CertificateVerify"))]);
    expect(verify(row.digest, signed, certificate.publicKey, signature)).toBe(true);
  });

  it.each(["server", "client"])("has the Finished message of the %s that its secret yields", (from) => {
    const index = opened.findIndex((one) => nameOf(one) === "Finished" && one.from === from);
    const secret = secrets.get(`${from.toUpperCase()}_HANDSHAKE_TRAFFIC_SECRET`) ?? Buffer.alloc(0);
    const key = expandLabel(secret, "finished", 48);
    const expected = createHmac("sha384", key).update(hashBefore(opened, index)).digest();
    expect(opened[index]?.content.subarray(4)).toEqual(expected);
  });
});

describe("PqcService.RecordHandshake", { timeout }, () => {
  it("records the hybrid group with an ECDSA certificate by default", async () => {
    const { group, certificate, records } = await pqc.recordHandshake({});
    expect([group, records.length]).toEqual(["X25519MLKEM768", 13]);
    expect(new X509Certificate(certificate).publicKey.asymmetricKeyType).toBe("ec");
  });

  it.each(["group", "certificate"])("refuses an unknown %s, and names the known ones", async (field) => {
    const error = await failureOf(pqc.recordHandshake({ [field]: "RSA" }));
    expect(describeRefusal(error)).toEqual(invalid(field));
    expect(error.message).toMatch(/X25519MLKEM768|ML-DSA-65/);
  });
});

describe("the thread that records handshakes", () => {
  it("is replaced at once if it ended while it was idle", { timeout }, async () => {
    const threads: Worker[] = [];
    const note = (thread: Worker): void => void threads.push(thread);
    process.on("worker", note);
    onTestFinished(() => void process.off("worker", note));
    const recorder = new HandshakeRecorder();
    await recorder.record({ group: "X25519", certificate: "" });
    await threads[0]?.terminate();
    expect(await recorder.record({ group: "P-384", certificate: "" })).toMatchObject({ group: "secp384r1" });
    expect(threads).toHaveLength(2);
  });
});

describe("a key log", () => {
  it("is written only by the thread that records handshakes", () => {
    const root = join(import.meta.dirname, "../..");
    const sources = globSync(["src/**/*.{ts,mjs}", "extensions/*/*.ts", "extensions/*/!(test)/**/*.ts"], {
      cwd: root,
    });
    expect(sources).toContain("src/server/http1-server.ts");
    const listening = sources.filter((path) =>
      /["'`]keylog["'`]/.test(readFileSync(join(root, path), "utf8")),
    );
    expect(listening).toEqual(["src/services/pqc/handshake-thread.ts"]);
  });
});

const limited = { code: "ResourceExhausted", reason: "RATE_LIMITED" };
const hybrid = { group: "X25519MLKEM768", certificate: "ECDSA-P256" };
const classical = { group: "X25519", certificate: "ECDSA-P256" };
const third = { group: "P-384", certificate: "ML-DSA-65" };

/** A recorder with a clock that the test sets, and recordings that end when the test says so. */
function createRecorder() {
  const clock = { nowMs: 0 };
  const begun: { input: unknown; end: (error?: Error) => void }[] = [];
  const record = (input: unknown): Promise<RecordedHandshake> => {
    const { promise, resolve, reject } = Promise.withResolvers<RecordedHandshake>();
    const none = { records: [], group: "", cipherSuite: "", certificate: "" };
    const recorded = { ...none, keyLog: String(begun.length) };
    begun.push({ input, end: (error) => (error === undefined ? resolve(recorded) : reject(error)) });
    return promise;
  };
  return { clock, begun, recorder: new HandshakeRecorder({ record, nowMs: () => clock.nowMs }) };
}

/** Lets everything run that waits for nothing else. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("HandshakeRecorder", () => {
  it("answers equal calls of the next second with the same recording, and then makes another", async () => {
    const { recorder, begun, clock } = createRecorder();
    const first = recorder.record(hybrid);
    await settle();
    clock.nowMs = 5000;
    const whileRecording = recorder.record(hybrid);
    begun[0]?.end();
    await first;
    clock.nowMs = 5999;
    expect(await recorder.record(hybrid)).toBe(await first);
    expect(await whileRecording).toBe(await first);
    clock.nowMs = 6000;
    void recorder.record(hybrid);
    await settle();
    expect(begun).toHaveLength(2);
  });

  it("records one at a time", async () => {
    const { recorder, begun } = createRecorder();
    void recorder.record(hybrid);
    void recorder.record(classical);
    await settle();
    expect(begun).toHaveLength(1);
    begun[0]?.end();
    await settle();
    expect(begun.map(({ input }) => input)).toEqual([hybrid, classical]);
  });

  it("refuses a third recording in a second, and says when to retry", async () => {
    const { recorder, begun, clock } = createRecorder();
    const both = [recorder.record(hybrid), recorder.record(classical)];
    await settle();
    expect(() => recorder.record(third)).toThrow(/two|2 handshakes a second/);
    begun[0]?.end();
    await settle();
    clock.nowMs = 100;
    begun[1]?.end();
    await Promise.all(both);
    clock.nowMs = 400;
    const refused = Promise.resolve().then(() => recorder.record(third));
    expect(await refusal(refused)).toEqual(limited);
    await expect(refused).rejects.toMatchObject({
      details: expect.arrayContaining([
        expect.objectContaining({ value: { retryDelay: expect.objectContaining({ nanos: 600_000_000 }) } }),
      ]),
    });
    clock.nowMs = 1000;
    void recorder.record(third);
    await settle();
    expect(begun.map(({ input }) => input)).toEqual([hybrid, classical, third]);
  });

  it("goes on after a recording that fails", async () => {
    const { recorder, begun, clock } = createRecorder();
    const first = recorder.record(hybrid);
    const second = recorder.record(classical);
    await settle();
    begun[0]?.end(new Error("the thread ended"));
    await expect(first).rejects.toThrow("the thread ended");
    await settle();
    begun[1]?.end();
    expect((await second).keyLog).toBe("1");
    clock.nowMs = 1000;
    void recorder.record(hybrid);
    await settle();
    expect(begun).toHaveLength(3);
  });
});
