import { createHash } from "node:crypto";
import type { CallOptions } from "@connectrpc/connect";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
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
