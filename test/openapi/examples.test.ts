import { beforeAll, describe, expect, it } from "vitest";
import { type Example, type ExampleValue, fillExample, type Json } from "../../src/calls/example.ts";
import type { MediaType, Parameter } from "../../src/openapi/document.ts";
import { collectProfiles } from "../../src/services/registry.ts";
import { endAfterAll } from "../support/at-end.ts";
import { loadPackages } from "../support/whole-program.ts";
import { type ApiServer, startApi } from "./api-server.ts";
import {
  callExamples,
  findBodyField,
  findOperation,
  findPattern,
  listOperations,
  loadExamples,
  type Outcome,
} from "./call-examples.ts";
import { type CheckSchema, createCheck } from "./check-schema.ts";

const examples = await loadExamples();
const profiles = collectProfiles(await loadPackages());

let api: ApiServer;
let outcomes: ReadonlyMap<string, Outcome>;
let check: CheckSchema;

const atEnd = endAfterAll();

beforeAll(async () => {
  api = await startApi("open", atEnd);
  check = createCheck(api.document);
  outcomes = await callExamples(api, examples);
}, 180_000);

function outcomeOf(name: string): Outcome {
  const outcome = outcomes.get(name);
  if (outcome === undefined) throw new Error(`${name} was not called`);
  return outcome;
}

/** Returns whether the document contains a request exactly as sent. */
function isLiteral(value: ExampleValue): boolean {
  let open = 0;
  fillExample(value, () => {
    open += 1;
    return null;
  });
  return open === 0;
}

/** Returns the request that the document shows for an example, assembled from parameters and body. */
function shownRequest({ rpc, name, request }: Example): unknown {
  const { operation } = findOperation(api.document, rpc);
  const parameters = (operation.parameters ?? []).filter((one): one is Parameter => "example" in one);
  const fields: Record<string, unknown> = {};
  for (const parameter of parameters) {
    const { name: field, example } = parameter;
    const pattern = findPattern(parameter);
    if (pattern === undefined) fields[field] = example;
    else fields[pattern.field] = pattern.fill(fields[pattern.field], String(example));
  }
  const { example, examples: several } = operation.requestBody?.content["application/json"] ?? {};
  const body = (several?.[name]?.value ?? example ?? {}) as object;
  const members = request as Record<string, unknown>;
  const bodyField = findBodyField(operation, members);
  if (bodyField === undefined) return { ...fields, ...body };
  // A parameter may be a part of the body's field, such as the name of a key.
  const others = Object.entries(fields).filter(([path]) => path in members);
  // A parameter shows the value of its RPC's first example, whereas a body shows all.
  const isFirst = examples.find((one) => one.rpc === rpc)?.name === name;
  return { ...Object.fromEntries(others), ...(!isFirst && members), [bodyField]: body };
}

describe("the examples of the API description", () => {
  it("exist for every operation", () => {
    const bindings = listOperations(api.document).map(({ operation }) => operation.operationId);
    // Other bindings of an RPC share its examples.
    const ids = bindings.map((id) => id.replace(/_\d+$/, ""));
    const shown = new Set(examples.map(({ rpc }) => rpc.replaceAll(".", "_")));
    expect(ids.filter((id) => !shown.has(id))).toEqual([]);
  });

  it.each(examples)("$rpc: $name is shown, and answered as the document describes", (example) => {
    expect(shownRequest(example)).toEqual(fillExample(example.request, ({ sample }) => sample));
    const { found, status, mediaType, body } = outcomeOf(example.name);
    expect(status).toBe(200);
    const service = example.rpc.slice(0, example.rpc.lastIndexOf("."));
    const isOurs = profiles[service]?.restStyle === undefined;
    if (mediaType === "application/json" && isOurs) expect(body).toMatchObject({ status: "success" });
    const place = ["paths", found.path, found.method, "responses", "200", "content", mediaType, "schema"];
    expect(check(place, body ?? "")).toEqual([]);
  });

  const withBody = examples.filter(
    ({ rpc }) => !/\.(Get(?!ImportParameters)|List|Watch|Hello|Destroy|Export|Remove|Revoke)/.test(rpc),
  );
  it.each(withBody)("$rpc: $name sends the documented request", ({ name }) => {
    const { found, sent } = outcomeOf(name);
    const [mediaType = ""] = Object.keys(found.operation.requestBody?.content ?? {});
    const place = ["paths", found.path, found.method, "requestBody", "content", mediaType, "schema"];
    expect(check(place, sent)).toEqual([]);
  });

  it("need no earlier answer for at least half of the operations", () => {
    const literal = examples.filter(({ request, token }) => isLiteral(request) && token === undefined);
    const half = listOperations(api.document).length / 2;
    expect(new Set(literal.map(({ rpc }) => rpc)).size).toBeGreaterThan(half);
  });
});

describe("an operation of the API description", () => {
  it("has an answer in the form that it describes", () => {
    for (const { path, method, operation } of listOperations(api.document)) {
      const { "200": response } = operation.responses;
      const content = response && "content" in response ? Object.entries(response.content ?? {}) : [];
      const shown = content.flatMap(([type, media]) => listValues(media).map((value) => ({ type, value })));
      expect(shown.length, operation.operationId).toBeGreaterThan(0);
      for (const { type, value } of shown) {
        const place = ["paths", path, method, "responses", "200", "content", type, "schema"];
        expect(check(place, value), operation.operationId).toEqual([]);
      }
    }
  });

  it("names its RPC", () => {
    for (const { operation } of listOperations(api.document)) {
      const id = operation.operationId.replace(/_\d+$/, "");
      expect(operation["x-grpc"].method.replaceAll(/[./]/g, "_")).toBe(id);
    }
  });
});

function listValues({ example, examples: several }: MediaType): Json[] {
  return [
    ...(example === undefined ? [] : [example]),
    ...Object.values(several ?? {}).map(({ value }) => value),
  ];
}

describe("the examples do what their summaries say", () => {
  it.each([
    ["verify-signature", { valid: true }],
    ["verify-token", { valid: true, subject: "ada" }],
    ["verify-token-signature", { valid: true }],
    ["get-secure-data", { subject: "ada" }],
    ["verify", { result: { valid: true } }],
    ["verify-audit-log", { valid: true }],
    ["authenticate", { authenticated: true, reason: "" }],
    ["send-telemetry", { verified: true, reason: "" }],
    ["update-firmware", { result: "FIRMWARE_ACCEPTED", reason: "" }],
    ["verify-handshake", { valid: true }],
    ["receive-packet", { data: Buffer.from("ping").toString("base64") }],
    ["dual-verify", { bothValid: true }],
    ["dual-verify-composite", { bothValid: true }],
    ["verify-transaction", { valid: true }],
    ["execute-proposal", { executed: true }],
    ["list-proposals", { totalSize: 1 }],
    ["verify-chain", { valid: true }],
    ["verify-nft", { valid: true }],
    ["list-tokens", { totalSize: 1 }],
    ["get-history", { totalSize: 1 }],
  ])("%s", (name, expected) => {
    expect(outcomeOf(name).body).toMatchObject(expected);
  });

  it("decapsulate returns the secret from encapsulate", () => {
    const secretOf = (name: string) => (outcomeOf(name).body as { result: { sharedSecret: string } }).result;
    expect(secretOf("decapsulate").sharedSecret).toBe(secretOf("encapsulate").sharedSecret);
  });
});
