import { beforeAll, describe, expect, it } from "vitest";
import { type Example, fillExample } from "../../src/calls/example.ts";
import type { Parameter } from "../../src/openapi/document.ts";
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
  it("exist for every operation, which names its RPC", () => {
    const operations = listOperations(api.document).map(({ operation }) => operation);
    // Other bindings of an RPC share its examples.
    const rpcs = operations.map(({ operationId }) => operationId.replace(/_\d+$/, ""));
    const shown = new Set(examples.map(({ rpc }) => rpc.replaceAll(".", "_")));
    expect(rpcs.filter((rpc) => !shown.has(rpc))).toEqual([]);
    const named = operations.map((operation) => operation["x-grpc"].method.replaceAll(/[./]/g, "_"));
    expect(named).toEqual(rpcs);
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
});
