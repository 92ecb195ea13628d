import { createHash } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { forgeToken, logIn, presentToken, verifyOnBothSides } from "../../page/stories/tokens/steps.ts";
import { createFakeCaller } from "./fake-caller.ts";

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

/** A server that calls every token valid, and refuses a call unless the test says otherwise. */
function startIssuer({ isOpen = false, keys = [{ ...key, kid }] } = {}) {
  return createFakeCaller(({ service }) =>
    service(TokenService, {
      issueToken: ({ username }) => ({ token: issue(username) }),
      getJwks: () => ({ keys }),
      verifyToken: () => ({ valid: true }),
      getSecureData() {
        if (!isOpen) throw new ConnectError("no token", Code.Unauthenticated);
        return { subject: "ada" };
      },
    }),
  );
}

const issued = await logIn(startIssuer(), { username: "ada", password: "" });

describe("logIn", () => {
  it("takes the token apart", () => {
    expect(issued.parts).toMatchObject({ header: { kid }, payload: { sub: "ada" } });
  });
});

describe("verifyOnBothSides", () => {
  it("finds the token valid, and the key's name equal to its thumbprint", async () => {
    expect(await verifyOnBothSides(startIssuer(), issued)).toMatchObject({
      thumbprint: kid,
      verdicts: { server: true, browser: true },
    });
  });

  it("finds that another key was published under the name", async () => {
    const pub = encode(ml_dsa65.keygen().publicKey);
    const found = await verifyOnBothSides(startIssuer({ keys: [{ ...key, pub, kid }] }), issued);
    expect(found.verdicts).toEqual({ server: true, browser: false });
    expect(found.thumbprint).not.toBe(kid);
  });

  it("fails where the key set lacks the token's key", async () => {
    await expect(verifyOnBothSides(startIssuer({ keys: [] }), issued)).rejects.toThrow("key set");
  });
});

describe("presentToken", () => {
  it("fails where the server answers without a token", async () => {
    await expect(presentToken(startIssuer({ isOpen: true }), issued)).rejects.toThrow();
  });
});

describe("forgeToken", () => {
  it("finds the forged token not valid, and shows the refusal", async () => {
    const { after, verdicts, refusal } = await forgeToken(startIssuer(), issued, { key: { ...key, kid } });
    expect(JSON.parse(after)).toEqual({ sub: "mallory" });
    expect(verdicts).toEqual({ server: true, browser: false });
    expect(refusal.code).toBe("UNAUTHENTICATED");
  });
});
