import { createHash } from "node:crypto";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { forging, issuing, using, verifying } from "../../page/stories/tokens/page.tsx";
import { refusalOf, runStep, serve } from "./fake-caller.ts";

const { publicKey, secretKey } = ml_dsa65.keygen();
const key = { kty: "AKP", alg: "ML-DSA-65", pub: Buffer.from(publicKey).toString("base64url") };
const kid = createHash("sha256")
  .update(JSON.stringify({ alg: key.alg, kty: key.kty, pub: key.pub }))
  .digest("base64url");

function encode(part: object | Uint8Array): string {
  return Buffer.from(part instanceof Uint8Array ? part : JSON.stringify(part)).toString("base64url");
}

function issue(sub: string): string {
  const text = `${encode({ alg: "ML-DSA-65", kid })}.${encode({ sub })}`;
  return `${text}.${encode(ml_dsa65.sign(Buffer.from(text), secretKey))}`;
}

/** A server that calls every token valid, and refuses calls unless the test allows them. */
function startIssuer({ isOpen = false, keys = [{ ...key, kid }] } = {}) {
  return serve(TokenService, {
    issueToken: ({ username }) => ({ token: issue(username) }),
    getJwks: () => ({ keys }),
    verifyToken: () => ({ valid: true }),
    getSecureData() {
      if (!isOpen) throw refusalOf("TOKEN_SIGNATURE_INVALID");
      return { subject: "ada" };
    },
  });
}

const issued = await runStep(issuing, startIssuer(), { username: "ada", password: "" });

describe("verifying", () => {
  it("finds the token valid, and the key's name equal to its thumbprint", async () => {
    expect(issued.parts).toMatchObject({ header: { kid }, payload: { sub: "ada" } });
    const { thumbprint, verdicts } = await runStep(verifying, startIssuer(), { issuing: issued });
    expect([thumbprint, verdicts]).toEqual([kid, { server: true, browser: true }]);
  });

  it("detects that a different key was published under the name", async () => {
    const pub = encode(ml_dsa65.keygen().publicKey);
    const issuer = startIssuer({ keys: [{ ...key, pub, kid }] });
    const found = await runStep(verifying, issuer, { issuing: issued });
    expect(found.verdicts).toEqual({ server: true, browser: false });
    expect(found.thumbprint).not.toBe(kid);
  });

  it("fails if the key set lacks the token's key", async () => {
    const issuer = startIssuer({ keys: [] });
    await expect(runStep(verifying, issuer, { issuing: issued })).rejects.toThrow("key set");
  });
});

it("using fails if the server answers without a token", async () => {
  const issuer = startIssuer({ isOpen: true });
  await expect(runStep(using, issuer, { issuing: issued })).rejects.toMatchObject({
    reason: "NOT_REFUSED",
  });
});

it("forging finds the forged token invalid, and shows the refusal", async () => {
  const given = { issuing: issued, verifying: { key: { ...key, kid } } };
  const { after, verdicts } = await runStep(forging, startIssuer(), given);
  expect(JSON.parse(after)).toEqual({ sub: "mallory" });
  expect(verdicts).toEqual({ server: true, browser: false });
});
