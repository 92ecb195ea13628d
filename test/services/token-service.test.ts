import { createHash } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { CallOptions } from "@connectrpc/connect";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { toPublicJwk } from "../../src/crypto/jwk.ts";
import { signJwt } from "../../src/crypto/jwt.ts";
import { describeRefusal, failureOf, refusal } from "../support/refusal.ts";
import { fieldInvalid } from "../support/refusals.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
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
    expect(await tokens.verifyToken({ token: "hello" })).toMatchObject(invalid(/not a JWT/));
    const forged = await tokens.verifyToken({ token: forge(token) });
    expect(forged).toMatchObject(invalid(/signature/));
    expect([forged.subject, forged.expiresAt]).toEqual([undefined, undefined]);
    nowMs = startMs + lifetimeMs;
    expect(await tokens.verifyToken({ token })).toMatchObject(invalid(/expired/));
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
    expect(changed).toMatchObject(invalid(/signature/));
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

function invalid(reason: RegExp) {
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
