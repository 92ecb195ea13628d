/** The messages of refused REST calls. */
import { expect, it } from "vitest";
import { describeKms } from "./kms-server.ts";

const unknown = "key-00000000-0000-4000-8000-000000000000";
const data = "AAAA";

describeKms("kms.KmsService over REST", (_start, shared) => {
  it("returns errors in the specified form", async () => {
    const { rest } = await shared();
    const { status, json } = await rest(`GET /api/kms/key/${unknown}`);
    expect([status, json]).toStrictEqual([
      404,
      {
        status: "error",
        code: "NOT_FOUND",
        message: `key ${unknown} does not exist`,
        details: [
          {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            reason: "KEY_NOT_FOUND",
            domain: "quantum-safe-playground",
            metadata: { keyId: unknown },
          },
        ],
      },
    ]);
  });

  it.each([
    ["POST /api/kms/create-keys", {}, /^the path \/api\/kms\/create-keys does not exist$/],
    [
      "POST /api/kms/create-key",
      { algorithm: "mldsa65" },
      /^algorithm: did you mean "ML-DSA-65"\? It must be in list \[.*\]$/,
    ],
    [
      "POST /api/kms/create-key",
      { usage: "SING" },
      /^usage: did you mean "SIGN"\? It must be in list \[.*\]$/,
    ],
    ["POST /api/kms/create-key", { algorithm: "RSA" }, /^algorithm: must be in list \[[^\]]*\]$/],
    ["POST /api/kms/sign", { keyId: unknown, data: 5 }, /^data: expected a base64 string, got 5$/],
    ["POST /api/kms/batch-sign", { keyId: unknown, data: "x" }, /^data: expected a list, got "x"$/],
    [
      "POST /api/kms/sign",
      { data, keyId: "a\nb" },
      /^keyId: must not contain control characters, and an ID must have at most 255 characters$/,
    ],
  ])("states what is wrong and the valid form: %s %j", async (line, body, message) => {
    const { rest } = await shared();
    expect((await rest(line, body)).json.message).toMatch(message);
  });

  it("lists each field once for programs, however many rules it breaks", async () => {
    const { rest } = await shared();
    const { json } = await rest("POST /api/kms/sign", { keyId: unknown, data, mu: data, context: data });
    expect(json.details).toContainEqual(expect.objectContaining({ metadata: { field: "mu,context,data" } }));
  });
});
