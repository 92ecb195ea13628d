import { describe, expect, it } from "vitest";
import { type RestAnswer, restRefusal } from "../answers.ts";
import { createKey, describeKms } from "./kms-server.ts";

const unknown = "key-00000000-0000-4000-8000-000000000000";
const data = "AAAA";

const notFound = { status: 404, code: "NOT_FOUND", reason: "KEY_NOT_FOUND", fields: [] };
const failed = { status: 400, code: "FAILED_PRECONDITION", fields: [] };
const invalid = (reason: string, ...fields: string[]) => ({
  status: 400,
  code: "INVALID_ARGUMENT",
  reason,
  fields,
});

describeKms("kms.KmsService over REST", (_start, shared) => {
  it("refuses in the form of the contract", async () => {
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

  it("names a path that does not exist, and guesses no other", async () => {
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

  describe("does not find the keyId", () => {
    it.each([
      "a b",
      "a/b",
      "a%2Fb",
      "%",
      "100%25",
      "a?b",
      "a#b",
      "ключ",
      "🔑",
      "a+b",
      "a;b=c",
      "a&b",
      "{keyId}",
    ])("%s in a path", async (keyId) => {
      const { rest } = await shared();
      const path = `/api/kms/key/${encodeURIComponent(keyId)}`;
      for (const answer of [await rest(`GET ${path}`), await rest(`DELETE ${path}`)]) {
        expect(restRefusal(answer)).toEqual(notFound);
        expect(JSON.stringify(answer.json)).toContain(JSON.stringify(keyId).slice(1, -1));
      }
    });
  });

  it("finds a key whose keyId is percent-encoded although it need not be", async () => {
    const { kms, rest } = await shared();
    const { keyId } = await createKey(kms);
    const encoded = [...keyId].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join("");
    expect((await rest(`GET /api/kms/key/${encoded}`)).json).toMatchObject({ result: { keyId } });
  });

  it.each([
    ["a control character", "a%00b", "FIELD_INVALID"],
    ["256 characters", "a".repeat(256), "FIELD_INVALID"],
    ["a percent sign that encodes nothing", "100%", "TARGET_INVALID"],
    ["bytes that are no UTF-8", "%ff%fe", "TARGET_INVALID"],
  ])("refuses a path with %s", async (_what, segment, reason) => {
    const { rest } = await shared();
    for (const method of ["GET", "DELETE"])
      expect(restRefusal(await rest(`${method} /api/kms/key/${segment}`))).toMatchObject({
        status: 400,
        code: "INVALID_ARGUMENT",
        reason,
      });
  });

  type Send = (
    rest: (line: string, body?: unknown) => Promise<RestAnswer>,
    keyId: string,
  ) => Promise<RestAnswer>;
  const calls: [what: string, send: Send, expected: object][] = [
    [
      "an unknown JSON field",
      (rest, keyId) => rest("POST /api/kms/sign", { keyId, data, key: "x" }),
      invalid("FIELD_INVALID", "key"),
    ],
    [
      "a value of the wrong type",
      (rest) => rest("POST /api/kms/create-key", { alias: 7 }),
      invalid("FIELD_INVALID", "alias"),
    ],
    [
      "what is no base64",
      (rest, keyId) => rest("POST /api/kms/sign", { keyId, data: "not base64!" }),
      invalid("FIELD_INVALID", "data"),
    ],
    [
      "an unknown algorithm",
      (rest) => rest("POST /api/kms/create-key", { algorithm: "RSA" }),
      invalid("FIELD_INVALID", "algorithm"),
    ],
    [
      "an empty required field",
      (rest) => rest("POST /api/kms/rotate-key", { keyId: "" }),
      invalid("FIELD_INVALID", "keyId"),
    ],
    [
      "a signature of an impossible length",
      (rest, keyId) => rest("POST /api/kms/verify", { keyId, data, signature: "AAAA" }),
      invalid("LENGTH_INVALID", "signature"),
    ],
    [
      "an unknown query parameter",
      (rest) => rest("GET /api/kms/keys?colour=red"),
      invalid("PARAMETER_UNKNOWN", "colour"),
    ],
    [
      "a query parameter that comes twice",
      (rest) => rest("GET /api/kms/keys?status=ACTIVE&status=ROTATED"),
      invalid("PARAMETER_DUPLICATE", "status"),
    ],
    [
      "a page size that is no number",
      (rest) => rest("GET /api/kms/audit?pageSize=many"),
      invalid("FIELD_INVALID", "pageSize"),
    ],
    ["a keyId that there is not", (rest) => rest("POST /api/kms/sign", { keyId: unknown, data }), notFound],
    [
      "a key that is for something else",
      (rest, keyId) => rest("POST /api/kms/encapsulate", { keyId }),
      { ...failed, reason: "KEY_USAGE_MISMATCH" },
    ],
    [
      "a key in a state that does not allow it",
      async (rest, keyId) => {
        await rest(`DELETE /api/kms/key/${keyId}`);
        return rest(`DELETE /api/kms/key/${keyId}`);
      },
      { ...failed, reason: "KEY_STATE_INVALID" },
    ],
  ];
  it.each(calls)("refuses %s", async (_what, send, expected) => {
    const { kms, rest } = await shared();
    const { keyId } = await createKey(kms);
    const answer = await send(rest, keyId);
    expect(restRefusal(answer)).toEqual(expected);
    expect(answer.json.status).toBe("error");
  });

  it.each([
    [{ data: 5 }, "data: expected a base64 string, got 5"],
    [
      { data: "AAAA", keyId: "a\nb" },
      "keyId: must not contain control characters, and have at most 255 characters if it is an ID",
    ],
  ])("says what it takes: %j", async (fields, message) => {
    const { rest } = await shared();
    const { json } = await rest("POST /api/kms/sign", { keyId: unknown, ...fields });
    expect(json.message).toBe(message);
  });

  it("says that a list is wanted where there is one value", async () => {
    const { rest } = await shared();
    const { json } = await rest("POST /api/kms/batch-sign", { keyId: unknown, data: "x" });
    expect(json.message).toBe('data: expected a list, got "x"');
  });

  it("names each field once to programs, however many rules it breaks", async () => {
    const { rest } = await shared();
    const { json } = await rest("POST /api/kms/sign", { keyId: unknown, data, mu: data, context: data });
    expect(json.details).toContainEqual(expect.objectContaining({ metadata: { field: "mu,context,data" } }));
  });

  it("answers 500 and DATA_LOSS for a key that is damaged", async () => {
    const { kms, rest, tamper } = await shared();
    const { keyId } = await createKey(kms);
    await tamper((db) =>
      db.updateTable("kms_keys").set({ alias: "mine" }).where("key_id", "=", keyId).execute(),
    );
    expect(restRefusal(await rest("POST /api/kms/sign", { keyId, data }))).toEqual({
      status: 500,
      code: "DATA_LOSS",
      reason: "KEY_DAMAGED",
      fields: [],
    });
  });

  it.each([
    ["PUT", "/api/kms/create-key"],
    ["GET", "/api/kms/sign"],
    ["POST", "/api/kms/keys"],
    ["DELETE", "/api/kms/keys"],
  ])("answers 405 to %s %s", async (method, path) => {
    const { rest } = await shared();
    const body = method === "GET" ? undefined : {};
    expect(restRefusal(await rest(`${method} ${path}`, body))).toMatchObject({
      status: 405,
      reason: "METHOD_NOT_ALLOWED",
    });
  });
});
