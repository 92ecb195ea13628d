import { createServiceImplSpec } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { OperationSchema } from "#gen/google/longrunning/operations_pb.ts";
import type { Schema } from "../../src/openapi/document.ts";
import { Library } from "../gen/testing/library_pb.ts";
import type { Rule } from "../transcoding/rules.ts";
import { findOperation, listOperations } from "./call-examples.ts";
import { describeRule, describeRules, describeServices, parametersOf } from "./describe-rules.ts";

const library = describeServices([createServiceImplSpec(Library, {})]);
const bookRef = { $ref: "#/components/schemas/testing.Book" };
const bookInputRef = { $ref: "#/components/schemas/testing.BookInput" };

describe("an OpenAPI path", () => {
  it.each([
    ["uses the JSON name of a field", "/v1/{display_name}", "/v1/{displayName}", ["displayName"]],
    ["names a nested field", "/v1/{nested.long_name}", "/v1/{nested.longName}", ["nested.longName"]],
    ["includes the fixed part of a field", "/v1/{name=shelves/*}", "/v1/shelves/{name}", ["name"]],
    ["has one for each free segment", "/v1/{name=a/*/b/*}", "/v1/a/{name1}/b/{name2}", ["name1", "name2"]],
    ["has one parameter for the rest of a path", "/v1/{name=files/**}", "/v1/files/{name}", ["name"]],
    ["names other segments", "/v1/*/x/*", "/v1/{segment1}/x/{segment2}", ["segment1", "segment2"]],
    ["keeps the custom verb", "/v1/{name}:cancel", "/v1/{name}:cancel", ["name"]],
    ["encodes fixed segments", "/v1/a%20b/{name}", "/v1/a%20b/{name}", ["name"]],
    ["can be the root", "/", "/", []],
  ])("%s: %s", (_, template, path, names) => {
    const { at, operation } = describeRule({ get: template });
    expect(at).toBe(`get ${path}`);
    expect(parametersOf(operation, "path").map(({ name }) => name)).toEqual(names);
  });

  it.each([
    ["GetBook", "The value of the field is `shelves/{name1}/books/{name2}`."],
    ["ReadFile", "May have several segments, between slashes or %2F."],
  ])("explains how the parameters of %s form a field", (rpc, text) => {
    const parameters = parametersOf(findOperation(library, `testing.Library.${rpc}`).operation, "path");
    expect(new Set(parameters.map(({ description }) => description))).toEqual(new Set([text]));
  });

  it("is shared by calls that name its parameters differently, and explains its fields by the shared names", () => {
    const document = describeRules([{ get: "/v1/{name=a/*/b/*}" }, { delete: "/v1/{display_name=a/*/b/*}" }]);
    expect(Object.keys(document.paths)).toEqual(["/v1/a/{name1}/b/{name2}"]);
    const remove = findOperation(document, "testing.Ruled.Rpc2").operation;
    expect(parametersOf(remove, "path").map(({ name, description }) => [name, description])).toEqual([
      ["name1", "The value of the field is `a/{name1}/b/{name2}`."],
      ["name2", "The value of the field is `a/{name1}/b/{name2}`."],
    ]);
  });
});

describe("an RPC with several bindings", () => {
  it("has one operation per binding, each with a unique ID", () => {
    const ids = listOperations(library).map(({ operation }) => operation.operationId);
    expect(ids).toContain("testing_Library_GetBook");
    expect(ids).toContain("testing_Library_GetBook_2");
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe("a call that OpenAPI cannot describe", () => {
  it.each([
    ["without an HTTP rule", "- `testing.Library.CountBooks`"],
    ["with a custom method", "- `PURGE /v1/{parent=shelves/*}/books`: `testing.Library.PurgeBooks`"],
  ])("%s is listed in the description of its service", (_, text) => {
    expect(library.tags[0]?.description).toContain(text);
  });

  it("with QUERY is listed with its service, and as an extension of its path", () => {
    const query = { custom: { kind: "QUERY", path: "/v1/find" }, body: "*" };
    const document = describeRules([{ post: "/v1/find", body: "*", additionalBindings: [query] }]);
    expect(document.tags[0]?.description).toContain("- `QUERY /v1/find`: `testing.Ruled.Rpc1`");
    expect(Object.keys(document.paths["/v1/find"] ?? {})).toEqual(["post", "x-query"]);
    const { post, "x-query": extension } = document.paths["/v1/find"] ?? {};
    expect(extension).toEqual({
      ...post,
      operationId: "testing_Ruled_Rpc1_2",
      responses: { ...post?.responses, "400": expect.objectContaining({}) },
    });
    const describe400 = (operation: typeof post): string => JSON.stringify(operation?.responses["400"]);
    expect(describe400(extension)).toContain("MEDIA_TYPE_MISSING");
    expect(describe400(post)).not.toContain("MEDIA_TYPE_MISSING");
  });
});

describe("the OpenAPI query", () => {
  const queryOf = (rule: Rule) => parametersOf(describeRule(rule).operation, "query");
  const namesOf = (rule: Rule) => queryOf(rule).map(({ name }) => name);

  it("has every field with a textual form, including nested fields, but not of recursive messages", () => {
    const names = namesOf({ get: "/v1" });
    const expected = ["name", "tags", "timestamp", "struct", "nested.id", "nested.longName"];
    expect(names).toEqual(expect.arrayContaining(expected));
    expect(names.filter((name) => /^(labels|nesteds|any|nested|raw|nested\.child.*)$/.test(name))).toEqual(
      [],
    );
  });

  it.each<[what: string, rule: Rule, omitted: RegExp]>([
    ["fields in the path", { get: "/v1/{name}/{nested.id}" }, /^(name|nested\.id)$/],
    ["the body field", { post: "/v1", body: "nested" }, /^nested/],
    ["other members of a oneof in the path", { get: "/v1/{text}" }, /^(text|number|wrapped)$/],
    ["other members of a nested oneof", { get: "/v1/{part.id}" }, /^(text|number|wrapped)$/],
    ["other members of a oneof in the body", { post: "/v1", body: "text" }, /^(text|number|wrapped)$/],
  ])("omits %s", (_what, rule, omitted) => {
    const names = namesOf(rule);
    expect(names).toContain("displayName");
    expect(names.filter((name) => omitted.test(name))).toEqual([]);
  });

  it("is empty if the body is the whole request", () => {
    expect(namesOf({ post: "/v1", body: "*" })).toEqual([]);
  });

  it("repeats a parameter for a list, and uses JSON where nothing else works", () => {
    const parameters = new Map(queryOf({ get: "/v1" }).map((one) => [one.name, one]));
    expect(parameters.get("tags")?.schema).toEqual({ type: "array", items: { type: "string" } });
    expect(parameters.get("struct")?.content).toHaveProperty(
      ["application/json", "schema", "type"],
      "object",
    );
  });
});

function requestOf(rpc: string) {
  return findOperation(library, `testing.Library.${rpc}`).operation.requestBody;
}

function answerOf(rpc: string) {
  const answer = findOperation(library, `testing.Library.${rpc}`).operation.responses["200"];
  return answer !== undefined && "content" in answer ? (answer.content ?? {}) : {};
}

const json = (schema: object) => ({ "application/json": { schema } });

describe("a request body", () => {
  it.each<[what: string, rpc: string, content: object | undefined]>([
    ["can be a single field", "CreateBook", json(bookInputRef)],
    ["accepts anything for a google.api.HttpBody field", "PutCover", { "*/*": { schema: {} } }],
    ["is absent if the HTTP rule has none", "DeleteBook", undefined],
  ])("%s", (_what, rpc, content) => {
    expect(requestOf(rpc)?.content).toEqual(content);
  });

  it("refers to the whole message by name", () => {
    const { operation } = describeRule({ post: "/v1", body: "*" });
    expect(operation.requestBody?.content).toEqual(
      json({ $ref: "#/components/schemas/testing.EverythingInput" }),
    );
  });

  it("omits fields in the path, even nested ones", () => {
    const { operation } = describeRule({ post: "/v1/{nested.id}/{name}", body: "*" });
    const properties = operation.requestBody?.content["application/json"]?.schema.properties ?? {};
    expect(properties).toHaveProperty("displayName");
    expect(properties).not.toHaveProperty("name");
    expect(properties.nested?.properties).toHaveProperty("longName");
    expect(properties.nested?.properties).not.toHaveProperty("id");
  });

  it("is one JSON text per line, or an array, for a client stream", () => {
    const content = requestOf("ImportBooks")?.content;
    expect(content?.["application/x-ndjson"]?.schema).toMatchObject(bookInputRef);
    expect(content?.["application/json"]?.schema).toEqual({ type: "array", items: bookInputRef });
  });

  it("rejects unknown fields", () => {
    expect(library.components.schemas["testing.BookInput"]?.additionalProperties).toBe(false);
    expect(library.components.schemas["testing.Book"]?.additionalProperties).toBeUndefined();
  });
});

describe("a response body", () => {
  it.each<[what: string, rpc: string, content: object]>([
    ["is the whole message", "GetBook", json(bookRef)],
    ["can be a single field", "ListTitles", json({ type: "array", items: { type: "string" } })],
    ["allows anything for a google.api.HttpBody", "GetCover", { "*/*": { schema: {} } }],
    ["allows anything for a field with one", "StoreBlob", { "*/*": { schema: {} } }],
  ])("%s", (_what, rpc, content) => {
    expect(answerOf(rpc)).toEqual(content);
  });

  it("can be a field whose message is in another package", () => {
    const { operation, document } = describeRule({
      get: "/v1",
      output: OperationSchema,
      responseBody: "error",
    });
    expect(JSON.stringify(operation.responses["200"])).toContain('"#/components/schemas/google.rpc.Status"');
    expect(document.components.schemas).toHaveProperty(["google.rpc.Status", "properties", "message"]);
  });

  it("is null if that field is not set", () => {
    const { operation } = describeRule({ get: "/v1", responseBody: "nickname" });
    const content = json({ anyOf: [{ type: "string" }, { type: "null" }] });
    expect(operation.responses["200"]).toMatchObject({ content });
  });

  it("describes a server stream as lines or events, not as an array, which may never end", () => {
    const content = answerOf("WatchBooks");
    const each: Schema = { anyOf: [bookRef, { $ref: "#/components/schemas/ErrorResponse" }] };
    expect(Object.keys(content)[0]).toBe("application/x-ndjson");
    expect(content).not.toHaveProperty(["application/json"]);
    expect(content["application/x-ndjson"]?.schema).toMatchObject(each);
    expect(content["text/event-stream"]?.schema).toMatchObject({ type: "string" });
  });
});
