import { createHash } from "node:crypto";
import type { CallOptions } from "@connectrpc/connect";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { failureOf, refusal } from "../support/refusal.ts";
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
    const answer = await issue({ username: "ada" });
    expect(answer.status).toBe("success");
    expect(answer.token.length).toBeGreaterThan(4400);
    expect(answer.token.length).toBeLessThan(4700);
    expect(answer.expiresAt).toMatchObject({ seconds: BigInt((startMs + lifetimeMs) / 1000), nanos: 0 });
  });

  it("writes exactly the specified header", async () => {
    const { header } = takeApart((await issue({ username: "ada" })).token);
    const [key] = (await tokens.getJwks({})).keys;
    const common = { alg: "ML-DSA-65", typ: "JWT", kid: key?.kid };
    expect(header).toEqual(name === "PqcService" ? { ...common, use: "grpc" } : common);
  });

  it("writes exactly sub, iat in whole seconds, and exp = iat + 3600", async () => {
    nowMs = startMs + 999;
    const { payload } = takeApart((await issue({ username: "Ada Lovelace ♥" })).token);
    const iat = startMs / 1000;
    expect(payload).toEqual({ sub: "Ada Lovelace ♥", iat, exp: iat + 3600 });
  });

  it("accepts a username of 255 characters and any password while the server is open", async () => {
    const username = "ü".repeat(255);
    const { token } = await issue({ username, password: "secret" });
    expect(takeApart(token).payload).toMatchObject({ sub: username });
  });

  it.each([
    ["no username", {}, "username"],
    ["a username of 256 characters", { username: "x".repeat(256) }, "username"],
    ["a username with a line break", { username: "ada\nadmin" }, "username"],
    ["a username with a NUL", { username: "ada\0" }, "username"],
    ["a password of 1025 bytes", { username: "ada", password: "x".repeat(1025) }, "password"],
  ])("rejects %s", async (_what, request, field) => {
    expect(await refusal(issue(request))).toEqual({
      code: "InvalidArgument",
      reason: "FIELD_INVALID",
      fields: [field],
    });
  });
});

describe.each(["PqcService", "TokenService"] as const)("%s.GetJwks", (name) => {
  it("lists the issuing key in RFC 9964 form, with its RFC 7638 thumbprint as kid", async () => {
    const { status, keys } = await (name === "PqcService" ? pqc.getJwks({}) : tokens.getJwks({}));
    expect(status).toBe("success");
    expect(keys).toHaveLength(1);
    const { $typeName, ...key } = keys[0] ?? {};
    const { pub = "" } = keys[0] ?? {};
    expect(Buffer.from(pub, "base64url")).toHaveLength(1952);
    const canonical = `{"alg":"ML-DSA-65","kty":"AKP","pub":"${pub}"}`;
    const kid = createHash("sha256").update(canonical).digest("base64url");
    expect(key).toEqual({ kty: "AKP", alg: "ML-DSA-65", pub, kid, use: "sig" });
  });
});

describe("TokenService.Hello", () => {
  it("greets anyone", async () => {
    const { status, message } = await tokens.hello({});
    expect([status, message]).toEqual(["success", expect.stringMatching(/\S/)]);
  });
});

describe("TokenService.GetHealth", () => {
  it("returns UP, and the active implementation", async () => {
    expect(await tokens.getHealth({})).toMatchObject({
      status: "success",
      serviceStatus: "UP",
      cryptoProvider: `OpenSSL ${process.versions.openssl}`,
      cryptoProviderActive: true,
    });
  });
});

describe("TokenService.VerifyToken with a token", () => {
  it.each(["PqcService", "TokenService"])(
    "accepts a token from %s, with its subject and expiry time",
    async (name) => {
      const { token } = await (name === "PqcService" ? pqc : tokens).issueToken({ username: "ada" });
      const answer = await tokens.verifyToken({ token });
      expect(answer).toMatchObject({ status: "success", valid: true, subject: "ada" });
      expect(answer.expiresAt?.seconds).toBe(BigInt((startMs + lifetimeMs) / 1000));
      expect(answer.reason).toBeUndefined();
      const use = name === "PqcService" ? "grpc" : undefined;
      expect([answer.use, answer.roles]).toEqual([use, ["user"]]);
    },
  );

  it("returns neither subject nor expiry time for an invalid token", async () => {
    const answer = await tokens.verifyToken({ token: forge(await adasToken()) });
    expect([answer.subject, answer.expiresAt]).toEqual([undefined, undefined]);
  });

  it("says why a token is not valid", async () => {
    const token = await adasToken();
    expect(await tokens.verifyToken({ token: "hello" })).toMatchObject(invalid(/not a JWT/));
    expect(await tokens.verifyToken({ token: forge(token) })).toMatchObject(invalid(/signature/));
    nowMs = startMs + lifetimeMs;
    expect(await tokens.verifyToken({ token })).toMatchObject(invalid(/expired/));
  });
});

describe("TokenService.VerifyToken with a signature", () => {
  const data = Buffer.from("hello");
  const { publicKey, secretKey } = ml_dsa65.keygen();
  const signature = ml_dsa65.sign(data, secretKey);

  it("accepts a valid signature", async () => {
    const answer = await tokens.verifyToken({ data, signature, publicKey });
    expect(answer).toMatchObject({ status: "success", valid: true });
    expect([answer.reason, answer.subject, answer.expiresAt]).toEqual([undefined, undefined, undefined]);
  });

  it("rejects an invalid signature, and says why", async () => {
    const answer = await tokens.verifyToken({ data: Buffer.from("hallo"), signature, publicKey });
    expect(answer).toMatchObject(invalid(/signature/));
  });

  it.each([
    ["nothing", {}],
    ["a token and a signature", { token: "x", data, signature, publicKey }],
    ["data alone", { data }],
    ["no public key", { data, signature }],
    ["no data", { signature, publicKey }],
    ["two public keys", { data, signature, publicKey, publicKeyPem: "x" }],
  ])("rejects %s", async (_what, request) => {
    expect(await refusal(tokens.verifyToken(request))).toMatchObject({
      code: "InvalidArgument",
      reason: "FIELD_INVALID",
    });
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
    expect(await refusal(Promise.reject(error))).toMatchObject({ reason: "TOKEN_MALFORMED" });
    expect(error.metadata.get("www-authenticate")).toBe('Bearer error="invalid_token"');
  });
});

describe("TokenService.GetSecureData", () => {
  it("returns the contents of the caller's token", async () => {
    const answer = await tokens.getSecureData({}, withAuthorization(`Bearer ${await adasToken()}`));
    expect(answer).toMatchObject({ status: "success", subject: "ada" });
    expect(answer.issuedAt?.seconds).toBe(BigInt(startMs / 1000));
    expect(answer.expiresAt?.seconds).toBe(BigInt((startMs + lifetimeMs) / 1000));
    expect(answer.message).toContain("ada");
  });

  it("accepts a PqcService token too", async () => {
    const { token } = await pqc.issueToken({ username: "grace" });
    const answer = await tokens.getSecureData({}, withAuthorization(`Bearer ${token}`));
    expect(answer.subject).toBe("grace");
  });
});

describe("TokenService.GetCryptoInfo", () => {
  it("lists the same parameter sets as GetAlgorithmInfo: 3 of ML-KEM, X-Wing, 3 of ML-DSA, 12 of SLH-DSA", async () => {
    const { algorithms } = await tokens.getCryptoInfo({}, withAuthorization(`Bearer ${await adasToken()}`));
    expect(algorithms).toEqual((await pqc.getAlgorithmInfo({})).algorithms);
    expect(algorithms).toHaveLength(19);
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
