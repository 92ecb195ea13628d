import { createRemoteJWKSet, decodeProtectedHeader, errors, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const dataDir = makeTemporaryDirectory(afterAll);
let server: RunningServer;
beforeAll(async () => {
  server = await startServer({ dataDir });
});
afterAll(() => server.stop());

describe.each([
  ["PqcService", "/api/grpc/auth/jwks", "/api/grpc/auth/token", { use: "grpc" }],
  ["TokenService", "/api/auth/jwks", "/api/auth/token", {}],
])("jose, given only the address of the %s key set,", (_name, jwksPath, tokenPath, headerMembers) => {
  it("verifies a token", async () => {
    const token = await issueToken(tokenPath);
    const { payload, protectedHeader } = await jwtVerify(
      token,
      createRemoteJWKSet(new URL(jwksPath, server.url)),
    );
    const iat = Number(payload.iat);
    expect(payload).toEqual({ sub: "ada", iat, exp: iat + 3600 });
    expect(protectedHeader).toEqual({
      alg: "ML-DSA-65",
      typ: "JWT",
      kid: decodeProtectedHeader(token).kid,
      ...headerMembers,
    });
  });

  it("rejects a tampered token", async () => {
    const [header, payload, signature] = (await issueToken(tokenPath)).split(".");
    const changed = Buffer.from(payload ?? "", "base64url")
      .toString()
      .replace("ada", "eve");
    const token = [header, Buffer.from(changed).toString("base64url"), signature].join(".");
    await expect(jwtVerify(token, createRemoteJWKSet(new URL(jwksPath, server.url)))).rejects.toThrow(
      errors.JWSSignatureVerificationFailed,
    );
  });
});

async function issueToken(path: string): Promise<string> {
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "ada" }),
  });
  return ((await response.json()) as { token: string }).token;
}
