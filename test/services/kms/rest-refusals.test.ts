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

  it("names an unknown path, and guesses no other", async () => {
    const { rest } = await shared();
    const path = "/api/kms/create-keys";
    expect((await rest(`POST ${path}`)).json).toMatchObject({
      message: `the path ${path} does not exist`,
      details: [{ reason: "ROUTE_NOT_FOUND", metadata: { path } }],
    });
  });

  it.each([
    ["algorithm", "mldsa65", 'did you mean "ML-DSA-65"?'],
    ["algorithm", "Dilithium3", 'Dilithium became ML-DSA (FIPS 204); did you mean "ML-DSA-65"?'],
    ["algorithm", "Kyber768", 'Kyber became ML-KEM (FIPS 203); did you mean "ML-KEM-768"?'],
    ["algorithm", "ML-DSA-655", 'did you mean "ML-DSA-65"?'],
    ["usage", "SING", 'did you mean "SIGN"?'],
  ])("suggests a value for the field %s: %s", async (field, value, hint) => {
    const { rest, kms } = await shared();
    const { json } = await rest("POST /api/kms/create-key", { [field]: value });
    expect(json).toMatchObject({
      message: expect.stringMatching(/^(algorithm|usage): .*\? It must be in list \[.*\]$/),
      details: [
        { reason: "FIELD_INVALID" },
        { fieldViolations: [{ field, description: expect.any(String) }] },
      ],
    });
    expect(json).toMatchObject({ message: expect.stringContaining(`: ${hint} It must be in list [`) });
    await expect(kms.createKey({ [field]: value })).rejects.toMatchObject({
      rawMessage: expect.stringContaining(`: ${hint} It must be in list [`),
    });
  });

  it.each(["RSA", "x".repeat(65), "mldsa65".padEnd(70, "-")])(
    "suggests no value for %s",
    async (algorithm) => {
      const { rest } = await shared();
      const { json } = await rest("POST /api/kms/create-key", { algorithm });
      expect(json).toMatchObject({
        message: expect.stringMatching(/^algorithm: must be in list \[[^\]]*\]$/),
      });
    },
  );

  it.each([
    [{ data: 5 }, "data: expected a base64 string, got 5"],
    [
      { data: "AAAA", keyId: "a\nb" },
      "keyId: must not contain control characters, and an ID must have at most 255 characters",
    ],
  ])("states the valid form: %j", async (fields, message) => {
    const { rest } = await shared();
    const { json } = await rest("POST /api/kms/sign", { keyId: unknown, ...fields });
    expect(json.message).toBe(message);
  });

  it("states that a list is expected if a single value was sent", async () => {
    const { rest } = await shared();
    const { json } = await rest("POST /api/kms/batch-sign", { keyId: unknown, data: "x" });
    expect(json.message).toBe('data: expected a list, got "x"');
  });

  it("lists each field once for programs, however many rules it breaks", async () => {
    const { rest } = await shared();
    const { json } = await rest("POST /api/kms/sign", { keyId: unknown, data, mu: data, context: data });
    expect(json.details).toContainEqual(expect.objectContaining({ metadata: { field: "mu,context,data" } }));
  });
});
