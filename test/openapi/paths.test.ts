import { createServiceImplSpec } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Library } from "../gen/testing/library_pb.ts";
import type { Rule } from "../transcoding/rules.ts";
import { findOperation, listOperations } from "./call-examples.ts";
import { describeRule, describeRules, describeServices, parametersOf } from "./describe-rules.ts";

const library = describeServices([createServiceImplSpec(Library, {})]);

describe("a path of OpenAPI", () => {
  it.each([
    ["names a field as JSON does", "/v1/{display_name}", "/v1/{displayName}", ["displayName"]],
    [
      "names a field of a message in the request",
      "/v1/{nested.long_name}",
      "/v1/{nested.longName}",
      ["nested.longName"],
    ],
    ["writes what is fixed about a field", "/v1/{name=shelves/*}", "/v1/shelves/{name}", ["name"]],
    [
      "has a parameter for each free segment of a field",
      "/v1/{name=shelves/*/books/*}",
      "/v1/shelves/{name1}/books/{name2}",
      ["name1", "name2"],
    ],
    ["has one for the rest of a path", "/v1/{name=files/**}", "/v1/files/{name}", ["name"]],
    [
      "has parameters for segments of no field",
      "/v1/*/x/*",
      "/v1/{segment1}/x/{segment2}",
      ["segment1", "segment2"],
    ],
    ["keeps the verb", "/v1/{name}:cancel", "/v1/{name}:cancel", ["name"]],
    ["encodes what is fixed", "/v1/a%20b/{name}", "/v1/a%20b/{name}", ["name"]],
    ["can be the root", "/", "/", []],
  ])("%s: %s", (_, template, path, names) => {
    const { at, operation } = describeRule({ get: template });
    expect(at).toBe(`get ${path}`);
    expect(parametersOf(operation, "path").map(({ name }) => name)).toEqual(names);
  });

  it("says how the parts of a field make the field", () => {
    const [shelf, book] = parametersOf(findOperation(library, "testing.Library.GetBook").operation, "path");
    expect(shelf?.description).toBe("The value of the field is `shelves/{name1}/books/{name2}`.");
    expect(book?.description).toBe("The value of the field is `shelves/{name1}/books/{name2}`.");
  });

  it("says that the rest of a path may have slashes", () => {
    const [rest] = parametersOf(findOperation(library, "testing.Library.ReadFile").operation, "path");
    expect(rest?.description).toBe("May have several segments; do not encode their slashes.");
  });

  it("is shared by calls that name its parameters differently", () => {
    const document = describeRules([{ get: "/v1/{name}" }, { delete: "/v1/{display_name}" }]);
    expect(Object.keys(document.paths)).toEqual(["/v1/{name}"]);
    const remove = findOperation(document, "testing.Ruled.Rpc2").operation;
    expect(parametersOf(remove, "path").map(({ name }) => name)).toEqual(["name"]);
  });
});

describe("an RPC of several bindings", () => {
  it("has an operation for each, with an id of its own", () => {
    const ids = listOperations(library).map(({ operation }) => operation.operationId);
    expect(ids).toContain("testing_Library_GetBook");
    expect(ids).toContain("testing_Library_GetBook_2");
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe("a call that OpenAPI cannot describe", () => {
  it.each([
    ["without an HTTP rule", "- `testing.Library.CountBooks`"],
    ["by a method of its own", "- `PURGE /v1/{parent=shelves/*}/books`: `testing.Library.PurgeBooks`"],
  ])("%s stands with its service", (_, text) => {
    expect(library.tags[0]?.description).toContain(text);
  });

  it("by QUERY stands with its service, and beside the other calls of its path as an extension", () => {
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

describe("the query of OpenAPI", () => {
  it.each([
    ["the path", { get: "/v1/{text}" }],
    ["the path, within a message", { get: "/v1/{part.id}" }],
    ["the body", { post: "/v1", body: "text" }],
  ])("offers no other member of a oneof that is in %s", (_place, rule) => {
    const names = queryOf(rule).map(({ name }) => name.split(".")[0]);
    expect(names.filter((name) => ["text", "number", "wrapped"].includes(name ?? ""))).toEqual([]);
  });

  const queryOf = (rule: Rule) => parametersOf(describeRule(rule).operation, "query");
  const namesOf = (rule: Rule) => queryOf(rule).map(({ name }) => name);

  it("has every field that a text can stand for, and those of messages in the request", () => {
    const names = namesOf({ get: "/v1" });
    expect(names).toEqual(
      expect.arrayContaining(["name", "tags", "timestamp", "struct", "nested.id", "nested.longName"]),
    );
    expect(names.filter((name) => ["labels", "nesteds", "any", "nested", "raw"].includes(name))).toEqual([]);
  });

  it("ends where a message holds itself", () => {
    expect(namesOf({ get: "/v1" }).filter((name) => name.startsWith("nested.child"))).toEqual([]);
  });

  it("lacks what stands in the path", () => {
    expect(namesOf({ get: "/v1/{name}/{nested.id}" })).not.toEqual(expect.arrayContaining(["name"]));
    expect(namesOf({ get: "/v1/{name}/{nested.id}" })).not.toEqual(expect.arrayContaining(["nested.id"]));
  });

  it("lacks the field that is the body", () => {
    const names = namesOf({ post: "/v1", body: "nested" });
    expect(names).toContain("name");
    expect(names.filter((name) => name.startsWith("nested."))).toEqual([]);
  });

  it("is empty where the body is the whole request", () => {
    expect(namesOf({ post: "/v1", body: "*" })).toEqual([]);
  });

  it("takes a list as one parameter several times, and JSON where nothing else will do", () => {
    const parameters = new Map(queryOf({ get: "/v1" }).map((one) => [one.name, one]));
    expect(parameters.get("tags")?.schema).toEqual({ type: "array", items: { type: "string" } });
    expect(parameters.get("struct")?.content).toHaveProperty(
      ["application/json", "schema", "type"],
      "object",
    );
  });
});
