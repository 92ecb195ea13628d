import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { fillExample } from "../../src/calls/example.ts";
import { isAlwaysRefused } from "../../src/calls/service-profile.ts";
import type { OpenApiDocument, Response as OpenApiResponse, Operation } from "../../src/openapi/document.ts";
import { errorNames } from "../../src/openapi/failures.ts";
import { collectProfiles } from "../../src/services/registry.ts";
import { endAfterAll } from "../support/at-end.ts";
import { loadPackages } from "../support/whole-program.ts";
import { type ApiServer, startApi } from "./api-server.ts";
import {
  type Found,
  findOperation,
  listOperations,
  loadExamples,
  type Members,
  toHttpCall,
  writeBody,
} from "./call-examples.ts";
import { createCheck } from "./check-schema.ts";

const examples = await loadExamples();
const profiles = collectProfiles(await loadPackages());
const modes = ["open", "token"] as const;
const servers = new Map<string, ApiServer>();
const atEnd = endAfterAll();

beforeAll(async () => {
  for (const mode of modes) servers.set(mode, await startApi(mode, atEnd));
}, 180_000);

function serverOf(mode: string): ApiServer {
  const server = servers.get(mode);
  if (server === undefined) throw new Error(`no server runs in the mode ${mode}`);
  return server;
}

function operationOf(rpc: string, mode = "open"): Operation {
  return findOperation(serverOf(mode).document, rpc).operation;
}

function contentOf({ responses }: Operation): NonNullable<OpenApiResponse["content"]> {
  return (responses["200"] as OpenApiResponse).content ?? {};
}

/** Returns an operation's failures with their texts, inline or shared. */
function failuresOf(rpc: string, mode = "open"): Record<string, string> {
  const { components } = serverOf(mode).document;
  return Object.fromEntries(
    Object.entries(operationOf(rpc, mode).responses).map(([status, response]) => {
      if (!("$ref" in response)) return [status, response.description];
      return [status, components.responses[response.$ref.split("/").at(-1) ?? ""]?.description ?? ""];
    }),
  );
}

/**
 * Calls an operation with its first example exactly as the document shows it, so its keys and wallets do not
 * exist.
 *
 * @param change further fields of the body, or of the query of a call without a body
 */
function callAsShown(
  url: string,
  found: Found,
  change: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const id = found.operation.operationId.replace(/_\d+$/, "");
  const example = examples.find(({ rpc }) => rpc.replaceAll(".", "_") === id);
  const request = fillExample(example?.request ?? {}, ({ sample }) => sample) as Members;
  const { method, target, body } = toHttpCall(found, request);
  // The example of an RPC may lack the parts of a different binding.
  const shown = new URL(target.replaceAll(/\{[^}]+\}/g, "some-id"), url);
  if (body !== undefined) {
    const content = Object.keys(found.operation.requestBody?.content ?? {});
    // As JSON, an upload is refused for its type.
    const type = content.find((name) => name.endsWith("form-urlencoded")) ?? "application/json";
    const headers = { "content-type": type };
    return fetch(shown, { method, headers, body: writeBody(type, { ...body, ...change }) });
  }
  for (const [name, value] of Object.entries(change)) shown.searchParams.append(name, value);
  return fetch(shown, { method });
}

it("the API description passes Redocly's strict rules for references, names, examples and descriptions", async () => {
  const described = ["operation-summary", "operation-description", "parameter-description"];
  const rules = Object.fromEntries(described.map((rule) => [rule, "error"] as const));
  const config = await createConfig({ extends: ["recommended-strict"], rules });
  const problems = await lintFromString({ source: JSON.stringify(serverOf("token").document), config });
  expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
});

describe.each(modes)("the API description of a server with --auth %s", (mode) => {
  it("is valid against the OpenAPI 3.1 schema", async () => {
    const { document } = serverOf(mode);
    expect(await new Validator().validate({ ...document })).toEqual({ valid: true });
  });

  it("has exactly one operation per REST call", () => {
    const { document, routes } = serverOf(mode);
    const offered = routes.filter(({ spec }) => !isAlwaysRefused(spec.method, profiles));
    // OpenAPI has no multi-segment parameters; these RPCs have a second path.
    const wanted = offered
      .filter(({ template }) => !template.text.startsWith("/api/kms/key/") || !template.text.includes("**"))
      .map(({ httpMethod, spec }) => `${httpMethod} ${spec.method.parent.typeName}.${spec.method.name}`);
    const queries = Object.values(document.paths).flatMap(({ "x-query": operation }) =>
      operation === undefined ? [] : [{ method: "QUERY", operation }],
    );
    const found = [...listOperations(document), ...queries].map(
      ({ method, operation }) =>
        `${method.toUpperCase()} ${operation.operationId.replace(/_\d+$/, "").replaceAll("_", ".")}`,
    );
    expect(found.length).toBeGreaterThan(60);
    expect(found.toSorted()).toEqual(wanted.toSorted());
  });

  it("has no schema with the name of a class that generators add", () => {
    const { schemas } = serverOf(mode).document.components;
    const added =
      /^(Api(Client|Error|Exception|Response)|Client|Configuration|Error|Exception|Json|Response)$/i;
    expect(Object.keys(schemas).filter((name) => added.test(name))).toEqual([]);
  });

  it("contains no text that would end a comment in generated code", () => {
    const text = JSON.stringify(serverOf(mode).document);
    expect(text.match(/.{0,60}\*\/.{0,20}/g)).toBeNull();
  });

  it("describes every schema and field in words", () => {
    const { document } = serverOf(mode);
    const fields = Object.entries(document.components.schemas).flatMap(
      ([name, { description, properties }]) => [
        ...(description ? [] : [name]),
        ...Object.entries(properties ?? {}).flatMap(([field, schema]) =>
          schema.description || schema.const === "error" || name.endsWith("ErrorResponse")
            ? []
            : [`${name}.${field}`],
        ),
      ],
    );
    expect(fields).toEqual([]);
  });

  it("uses JSON field names, even in prose", () => {
    const texts = JSON.stringify(serverOf(mode).document).match(
      /\b(key|token|device|public|wallet|tunnel)_(id|key|token)\b/g,
    );
    expect(texts).toBeNull();
  });

  it.each([
    ["IssueTokenRequestForm", "subject_token_type", "urn:ietf:params:oauth:token-type:access_token"],
    ["IssueTokenRequestForm", "actor_token_type", "because actor_token is"],
    ["IssueTokenResponse", "access_token", "the claims iss, sub, aud, client_id,"],
  ])("keeps the names of OAuth 2 in prose: %s.%s", (message, field, text) => {
    const schema = serverOf(mode).document.components.schemas[`oauth.${message}`];
    expect(schema?.properties?.[field]?.description).toContain(text);
  });
});

/** An operation's response. */
interface Answer {
  readonly operation: Operation;
  readonly status: number;
  /** Undefined for a response that is not an error. */
  readonly refused: Refused | undefined;
}

/** The error schema of a call, by the conventions of its service. */
function errorFormOf({ operationId }: Operation): string {
  const [, { restStyle = "own" } = {}] =
    Object.entries(profiles).find(([name]) => operationId.startsWith(`${name.replaceAll(".", "_")}_`)) ?? [];
  return errorNames[restStyle];
}

/** The reason of a refusal; the error name in OAuth 2, whose errors have no reason. */
function reasonOf(refused: Refused | undefined): string | undefined {
  if (refused === undefined) return undefined;
  if (!("error" in refused)) return refused.details[0]?.reason;
  return typeof refused.error === "string" ? refused.error : refused.error.details[0]?.reason;
}

/** Calls every operation of a server as its document shows it. */
async function callAll(mode: string, change?: Readonly<Record<string, string>>): Promise<Answer[]> {
  const { url, document } = serverOf(mode);
  const answers: Answer[] = [];
  for (const found of listOperations(document)) {
    const response = await callAsShown(url, found, change);
    const refused = response.status === 200 ? undefined : ((await response.json()) as Refused);
    // A stream would not end by itself.
    if (response.status === 200) await response.body?.cancel();
    answers.push({ operation: found.operation, status: response.status, refused });
  }
  return answers;
}

describe.each(modes)("a server with --auth %s, called as its description shows", (mode) => {
  let answers: readonly Answer[];

  beforeAll(async () => {
    answers = await callAll(mode);
  }, 180_000);

  /** Lists responses that the document does not describe, each as "operation: status". */
  const listSurprises = (given: readonly Answer[]): string[] => {
    const check = createCheck(serverOf(mode).document);
    return given.flatMap(({ operation, status, refused }) => {
      const form = errorFormOf(operation);
      const wrong = refused === undefined ? [] : check(["components", "schemas", form], refused);
      const isKnown = status in operation.responses && wrong.length === 0;
      return isKnown ? [] : [`${operation.operationId}: ${status} ${reasonOf(refused)} ${wrong}`.trim()];
    });
  };

  it("returns only responses that the document describes", () => {
    expect(listSurprises(answers)).toEqual([]);
  });

  it("rejects an undocumented field, as documented", {
    timeout: 180_000,
  }, async () => {
    const given = await callAll(mode, { bogus: "1" });
    expect(listSurprises(given)).toEqual([]);
    // A stream requires its token before it reads anything. A raw body has no fields, a form may have any.
    const withFields = given.filter(({ operation }) =>
      Object.keys(operation.requestBody?.content ?? {}).every((type) => type.endsWith("json")),
    );
    expect(withFields.filter(({ status }) => status !== 400 && status !== 401)).toEqual([]);
  });

  it("requires a token exactly where documented", () => {
    const wanted = answers.filter(({ refused }) => reasonOf(refused) === "TOKEN_MISSING");
    const said = answers.filter(({ operation }) => JSON.stringify(operation.security) === '[{"bearer":[]}]');
    expect(wanted).toEqual(said);
    expect(said.length).toBeGreaterThan(1);
    expect(said.every(({ operation: { responses } }) => "401" in responses && "403" in responses)).toBe(true);
  });
});

type Refused = ErrorResponse | { readonly error: ErrorResponse | string };

interface ErrorResponse {
  readonly message: string;
  readonly details: readonly { readonly reason?: string }[];
}

describe("who may call, in the API description", () => {
  it.each([
    ["open", "pqc.TokenService.Hello", []],
    ["open", "oauth.AuthorizationService.IssueToken", [{ basic: [] }, {}]],
    ["open", "kms.KmsService.Sign", [{}, { bearer: [] }]],
    ["token", "kms.KmsService.Sign", [{ bearer: [] }]],
  ])("with --auth %s, %s", (mode, rpc, security) => {
    expect(operationOf(rpc, mode).security).toEqual(security);
  });

  it("includes 401 and 403 only for calls that may require a token", () => {
    expect(failuresOf("kms.KmsService.Sign")).not.toHaveProperty("401");
    expect(failuresOf("pqc.TokenService.Hello", "token")).not.toHaveProperty("403");
  });
});

describe("how a call fails, in the API description", () => {
  it.each([
    ["kms.KmsService.Sign", "400", ["KEY_STATE_INVALID", "FIELD_INVALID", "JSON_INVALID"]],
    ["kms.KmsService.Sign", "413", ["BODY_TOO_LARGE"]],
    ["kms.KmsService.CreateKey", "409", ["IDEMPOTENCY_KEY_REUSED"]],
    ["kms.KmsService.BatchSign", "404", ["KEY_NOT_FOUND"]],
    ["vpn.VpnService.RegisterPeer", "429", ["ADDRESS_POOL_EMPTY", "SERVER_BUSY"]],
    ["defi.DefiService.SignProposal", "403", ["SIGNER_UNKNOWN"]],
    ["kms.KmsService.GetKey", "400", ["BODY_UNEXPECTED", "PARAMETER_UNKNOWN"]],
    ["kms.KmsService.GetKey", "431", ["METADATA_TOO_LARGE"]],
    ["kms.KmsService.GetKey", "500", ["KEY_DAMAGED", "INTERNAL"]],
    ["kms.KmsService.GetKey", "503", ["STORE_UNAVAILABLE", "SHUTTING_DOWN"]],
  ])("%s has %s with %j", (rpc, status, reasons) => {
    const text = failuresOf(rpc)[status] ?? "";
    expect(reasons.filter((reason) => !text.includes(`\`${reason}\``))).toEqual([]);
  });

  it.each(["Busy", "Unavailable"])("may state a retry delay: %s", (name) => {
    const response = serverOf("open").document.components.responses[name];
    expect(response).toMatchObject({ headers: { "Retry-After": {} } });
  });

  it.each([
    ["kms.KmsService.GetKey", "413"],
    ["kms.KmsService.GetKey", "409"],
    ["kms.KmsService.ListKeys", "404"],
    ["kms.KmsService.WatchAuditLog", "504"],
  ])("%s has no %s", (rpc, status) => {
    expect(failuresOf(rpc)).not.toHaveProperty(status);
  });
});

it("the schema of a stream's messages does not match the error that may end it", () => {
  const { document } = serverOf("open");
  const check = createCheck(document);
  const streams = listOperations(document).flatMap(
    ({ operation }) => contentOf(operation)["application/x-ndjson"]?.schema.anyOf ?? [],
  );
  const messages = streams.flatMap(({ $ref = "" }) =>
    $ref.endsWith("ErrorResponse") ? [] : [$ref.slice(2)],
  );
  expect(messages.length).toBeGreaterThan(4);
  const error = { status: "error", code: "INTERNAL", message: "", details: [] };
  for (const message of messages) expect(check(message.split("/"), error), message).not.toEqual([]);
});

it.each([
  ["kms.SignResponse", ["status", "result"]],
  ["oauth.IntrospectTokenResponse", undefined],
])("the API description requires in %s the fields that are always present: %j", (message, fields) => {
  expect(schemaOf(message).required).toEqual(fields);
});

describe("a GET, in the API description", () => {
  const described = (rpc: string) => {
    const { parameters, responses } = operationOf(rpc);
    const names = JSON.stringify(parameters ?? []).match(/(?<=parameters\/)\w+/g) ?? [];
    return [...names, ...Object.keys(responses).filter((status) => Number(status) < 400)];
  };

  it.each([
    ["kms.KmsService.GetKey", ["IfNoneMatch", "200", "304"]],
    ["tuf.RepositoryService.GetFile", ["IfNoneMatch", "Range", "200", "206", "304"]],
    ["kms.KmsService.GetCbom", ["200"]],
    ["kms.KmsService.Sign", ["200"]],
  ])("%s has %j", (rpc, names) => {
    expect(described(rpc)).toEqual(names);
  });

  it("of raw bytes has an example in base64, and says so", () => {
    const { responses } = operationOf("tuf.RepositoryService.GetFile");
    expect(responses["200"]).toMatchObject({
      description: "The file; over gRPC, a part of it. The example is in base64, the response is not.",
      content: { "application/octet-stream": { example: "e30=" } },
    });
  });

  it("returns 304 and entity tags as described", async () => {
    const { url, document } = serverOf("open");
    for (const { path, method, operation } of listOperations(document)) {
      if (method !== "get" || path.includes("{") || "text/event-stream" in contentOf(operation)) continue;
      const response = await fetch(url + path);
      await response.body?.cancel();
      const tag = response.headers.get("etag");
      if (response.status !== 200) continue;
      expect([path, tag !== null]).toEqual([path, "304" in operation.responses]);
    }
  });
});

it("the example of a failure matches the server's response, except for call-specific parts", async () => {
  const { url, document } = serverOf("open");
  const found = findOperation(document, "kms.KmsService.GetKey");
  const content = (found.operation.responses["404"] as OpenApiResponse).content ?? {};
  const answer = (await (await callAsShown(url, found)).json()) as ErrorResponse;
  const details = [{ ...answer.details[0], metadata: {} }];
  const shown = { ...answer, message: "what is wrong, and the valid form", details };
  expect(content["application/json"]?.example).toEqual(shown);
});

it.each([
  ["kms.KmsService.CreateKey", true],
  ["kms.KmsService.DestroyKey", true],
  ["kms.KmsService.GetKey", false],
  ["kms.KmsService.WatchAuditLog", false],
])("the API description has a parameter Idempotency-Key of %s: %j", (rpc, isKeyed) => {
  expect(JSON.stringify(operationOf(rpc).parameters ?? []).includes("IdempotencyKey")).toBe(isKeyed);
});

/** Returns a schema from the open server's document. */
function schemaOf(name: string): NonNullable<OpenApiDocument["components"]["schemas"][string]> {
  const schema = serverOf("open").document.components.schemas[name];
  if (schema === undefined) throw new Error(`no schema ${name}`);
  return schema;
}

describe("the proto rules in the API description", () => {
  /** The type says it already. */
  const withoutRule = expect.not.stringContaining("ust be a whole number");

  it.each([
    ["kms.CreateKeyRequest", "alias", { maxLength: 255, pattern: "^[^\\u0000-\\u001F\\u007F-\\u009F]*$" }],
    ["kms.SignRequest", "mu", { pattern: "^(?:[A-Za-z0-9+/_-]{86}(?:==)?)?$", maxLength: 88 }],
    [
      "kms.CreateKeyRequest",
      "usage",
      { anyOf: [{ enum: ["", "SIGN", "KEM", "ENCRYPT"] }, { type: "null" }] },
    ],
    ["iot.SendTelemetryRequest", "sequence", { type: ["integer", "null"], description: withoutRule }],
  ])("%s.%s", (name, field, expected) => {
    expect(schemaOf(name).properties?.[field]).toMatchObject(expected);
  });

  it.each([
    ["kms.BatchSignRequest", ["keyId", "data"]],
    ["kms.CreateKeyRequest", undefined],
  ])("%s requires %j", (name, required) => {
    expect(schemaOf(name).required).toEqual(required);
  });

  it("describe an upload as the bytes of a file", () => {
    expect(operationOf("tuf.RepositoryService.UploadTarget").requestBody).toEqual({
      required: true,
      content: { "application/octet-stream": { schema: { type: "string", format: "binary" } } },
    });
  });

  it.each(["pqc.TokenService.VerifyToken", "defi.DefiService.CreateMultisig", "nft.NftService.Verify"])(
    "%s requires a body",
    (rpc) => {
      expect(operationOf(rpc).requestBody?.required).toBe(true);
    },
  );

  it.each([
    ["CreateCryptoKey", "cryptoKeyId"],
    ["UpdateCryptoKey", "updateMask"],
  ])("Google's %s requires %s", (rpc, name) => {
    const { parameters = [] } = operationOf(`google.cloud.kms.v1.KeyManagementService.${rpc}`);
    expect(parameters.find((one) => "name" in one && one.name === name)).toMatchObject({ required: true });
  });

  it.each([
    ["kms.SignRequest", undefined, "Set exactly one of data and mu."],
    ["defi.CreateProposalRequest", "expiresAt", "Must be in the future."],
    ["kms.CreateKeyRequest", undefined, "rotationPeriodSeconds needs a name"],
    ["google.cloud.kms.v1.CryptoKey", "nextRotationTime", "2. Mark the new version as primary."],
  ])("%s %s is described as %j", (name, field, sentence) => {
    const schema = field === undefined ? schemaOf(name) : schemaOf(name).properties?.[field];
    expect(schema?.description).toContain(sentence);
  });
});

function get(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
  return fetch(serverOf("open").url + path, { method, headers });
}

const served = [
  ["/openapi.json", "application/json"],
  ["/openapi.yaml", "application/yaml"],
  ["/reference", "text/html"],
] as const;

describe.each(served)("GET %s", (path, type) => {
  it(`returns ${type} and forbids content sniffing`, async () => {
    const { status, headers } = await get(path);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(new RegExp(`^${type}(;|$)`));
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("is the same with gzip, without, and for a client that refuses it", async () => {
    const answers = await Promise.all(
      ["br;q=0.5, gzip", "identity", "gzip;q=0, identity"].map((accept) =>
        get(path, { "accept-encoding": accept }),
      ),
    );
    expect(answers.map(({ headers }) => headers.get("content-encoding"))).toEqual(["gzip", null, null]);
    expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1);
  });

  it("is not sent to a client that already has it, or for HEAD", async () => {
    const { headers } = await get(path);
    const again = await get(path, { "if-none-match": headers.get("etag") ?? "" });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const head = await get(path, {}, "HEAD");
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });
});

describe("the API description", () => {
  it.each(["1.1", "1.2"] as const)("is the same as JSON and as YAML %s", async (version) => {
    const yaml = await (await get("/openapi.yaml")).text();
    expect(parse(yaml, { maxAliasCount: 0, version })).toEqual(serverOf("open").document);
  });

  it("contains the server's version, but no address", () => {
    expect(serverOf("open").document).toMatchObject({
      openapi: "3.1.1",
      info: { version: expect.stringMatching(/^\d+\.\d+\.\d+$/) },
      servers: [{ url: "/" }],
    });
  });
});

describe("the reference page", () => {
  it("allows scripts and styles only from the server's own files", async () => {
    const policy = (await get("/reference")).headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(/^default-src 'none';/);
    expect(policy).toContain("script-src 'self';");
    expect(policy).not.toMatch(/unsafe-|https?:|\*/);
  });

  it("contains no external address", async () => {
    const page = await (await get("/reference")).text();
    expect(page.match(/(?:src|href)="[^"]+"/g)?.length).toBeGreaterThan(4);
    expect(page).not.toMatch(/(?:src|href)="(?:\w+:|\/\/)/);
  });
});

/** The description omits the calls of Google's interface that are always refused with 501. */
function listRefused(path: string): string[] {
  return /^\/v1\/.*\/cryptoKey(s|Versions)\/\{name\d\}$/.test(path) ? ["DELETE"] : [];
}

describe("a path of the API description", () => {
  it("returns in Allow exactly the described methods, plus HEAD for GET and OPTIONS", async () => {
    const paths = Object.entries(serverOf("open").document.paths);
    expect(paths.length).toBeGreaterThan(60);
    for (const [path, operations] of paths) {
      const described = Object.keys(operations).map((name) => name.replace("x-query", "query").toUpperCase());
      const listed = [...described, ...listRefused(path)];
      const expected = [...listed, ...(listed.includes("GET") ? ["HEAD"] : []), "OPTIONS"].sort().join(", ");
      const { status, headers } = await get(path.replace(/\{[^}]+\}/g, "some-id"), {}, "OPTIONS");
      expect([path, status, headers.get("allow")]).toEqual([path, 204, expected]);
    }
  });

  it("accepts QUERY where an extension describes it, and lists its media types", async () => {
    const all = Object.entries(serverOf("open").document.paths);
    const paths = all.filter(([, operations]) => "x-query" in operations);
    expect(paths.map(([path]) => path)).toEqual(["/api/grpc/verify", "/api/kms/verify"]);
    for (const [path, { "x-query": operation }] of paths) {
      const { status, headers } = await get(path, {}, "QUERY");
      const types = Object.keys(operation?.requestBody?.content ?? {}).join(", ");
      expect([path, status, headers.get("accept-query")]).toEqual([path, 400, types]);
    }
  });
});
