import { describe, expect, it } from "vitest";
import { NestedSchema } from "../gen/testing/kinds_pb.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { send } from "./client.ts";
import { createRestServer } from "./rest-server.ts";
import { type Rule, type RuledRpc, received, serveRules, startRefusal } from "./rules.ts";

describe("a rule that could never work prevents the start, and is named in the error", () => {
  const variables: Readonly<Record<string, readonly string[]>> = {
    "of an unknown field": ["bogus", "nested.bogus"],
    "by its JSON name": ["displayName", "other_name"],
    "inside a scalar or an enum": ["name.x", "color.x"],
    repeated: ["tags", "nested.tags", "nesteds.id"],
    "of a map": ["labels", "nested_by_number.id"],
    "of a message": ["nested", "nested.child", "any", "empty", "raw", "struct", "value", "list"],
    // http.proto allows "a primitive (non-message) type".
    "of a message with a textual form": ["timestamp", "duration", "mask", "string_wrapper", "int64_wrapper"],
  };
  for (const [what, fields] of Object.entries(variables)) {
    it.each(fields)(`a variable ${what}: {%s}`, (field) => {
      const sentence = startRefusal([{ get: `/v1/{${field}}` }]);
      for (const part of ["testing.Ruled1.Rpc1", field]) expect(sentence).toContain(part);
    });
  }

  const rows: [what: string, rule: Rule, ...named: string[]][] = [
    ["a template that violates the grammar", { get: "/v1/{name" }, "column 10"],
    ["an empty template", { get: "" }, "column 1"],
    ["a rule without a method and a path", {}],
    ["a custom rule without a method", { custom: { kind: "", path: "/v1" } }],
    ["a custom method that is not a token", { custom: { kind: "BAD METHOD", path: "/v1" } }, "BAD METHOD"],
    ["a custom rule without a path", { custom: { kind: "PURGE", path: "" } }, "column 1"],
    ["two variables of one oneof", { get: "/v1/{text}/{number}" }, "text", "number"],
    ["two variables of one nested oneof", { get: "/v1/{nested.first}/{nested.second}" }, "first", "second"],
    ["an unknown body field", { post: "/v1", body: "bogus" }, "bogus"],
    ["a body field below the top level", { post: "/v1", body: "nested.id" }, "nested.id"],
    ["a body field that is already in the path", { post: "/v1/{name}", body: "name" }, "name"],
    ["a GET body", { get: "/v1", body: "*" }, "GET"],
    ["a HEAD body", { custom: { kind: "HEAD", path: "/v1" }, body: "nested" }, "HEAD"],
    ["an unknown response_body", { get: "/v1", responseBody: "bogus" }, "bogus"],
    ["a response_body below the top level", { get: "/v1", responseBody: "nested.id" }, "nested.id"],
    ["a response_body of everything", { get: "/v1", responseBody: "*" }, "*"],
    [
      "nested additional bindings",
      { get: "/v1", additionalBindings: [{ get: "/v2", additionalBindings: [{ get: "/v3" }] }] },
      "additional binding 1",
    ],
    [
      "an impossible additional binding",
      { get: "/v1", additionalBindings: [{ get: "/v2" }, { get: "/v3/{bogus}" }] },
      "additional binding 2",
    ],
  ];
  it.each(rows)("%s", (_what, rule, ...named) => {
    const sentence = startRefusal([rule]);
    for (const part of ["testing.Ruled1.Rpc1", ...named]) expect(sentence).toContain(part);
  });
});

describe("a rule for the path of an RPC prevents the start", () => {
  it("if it is its own path", () => {
    const sentence = startRefusal([{ post: "/testing.Ruled1/Rpc1", body: "*" }]);
    for (const part of ["testing.Ruled1.Rpc1", "path of the RPC"]) expect(sentence).toContain(part);
  });

  it("if it is another RPC's path, in an additional binding, with any method", () => {
    const custom = { kind: "*", path: "/testing.Ruled2/Rpc1" };
    expect(startRefusal([{ get: "/v1", additionalBindings: [{ custom }] }], [{ get: "/v2" }])).toContain(
      "testing.Ruled1.Rpc1, additional binding 1",
    );
  });

  it("but not for an unknown RPC path or one with a verb", () => {
    expect(startRefusal([{ get: "/testing.Ruled1/Rpc9" }])).toBeUndefined();
    expect(startRefusal([{ get: "/testing.Ruled1/Rpc1:go" }])).toBeUndefined();
  });
});

describe("two rules that match the same requests prevent the start", () => {
  it.each<[what: string, one: Rule, other: Rule]>([
    ["variables with different names", { get: "/v1/{name}" }, { get: "/v1/{display_name}" }],
    ["a variable and its literals spelled out", { get: "/v1/{name=x/*}" }, { get: "/v1/x/{name}" }],
    ["a rest under literals", { get: "/v1/{name=x/**}" }, { get: "/v1/x/{display_name=**}" }],
    ["the same verb", { post: "/v1/{name}:go" }, { post: "/v1/*:go" }],
    ["literals that differ only in their encoding", { get: "/v1/caf%C3%A9/%61" }, { get: "/v1/caf%c3%a9/a" }],
    ["a method and a custom one", { get: "/v1" }, { custom: { kind: "GET", path: "/v1" } }],
    ["any method twice", { custom: { kind: "*", path: "/v1/x" } }, { custom: { kind: "*", path: "/v1/x" } }],
    ["different bodies", { post: "/v1", body: "*" }, { post: "/v1" }],
  ])("%s", (_what, one, other) => {
    expect(startRefusal([one, other])).toContain("testing.Ruled1.Rpc2");
  });

  it.each([
    ["of one service", [[{ get: "/v1" }, { get: "/v1" }]], "testing.Ruled1.Rpc2"],
    ["of two services", [[{ get: "/v1" }], [{ get: "/v1" }]], "testing.Ruled2.Rpc1"],
    [
      "of one RPC",
      [[{ get: "/v1", additionalBindings: [{ get: "/v1" }] }]],
      "testing.Ruled1.Rpc1, additional binding 1",
    ],
  ])("and the error names both places: rules %s", (_what, services, second) => {
    const sentence = startRefusal(...services);
    for (const place of ["testing.Ruled1.Rpc1", second])
      expect(sentence).toMatch(new RegExp(`(^| )${place} `));
  });
});

describe("rules that differ are accepted", () => {
  it.each<[what: string, ...rules: RuledRpc[]]>([
    ["verbs in different case", { get: "/v1/{name}:go" }, { get: "/v1/{name}:Go" }],
    ["an encoded slash and a slash", { get: "/v1/a%2Fb" }, { get: "/v1/a/b" }],
    ["a variable of a oneof", { get: "/v1/{part.id}/{part.long_name}" }],
    ["a variable with presence", { get: "/v1/{nickname}/{optional_count}" }],
    ["the root", { get: "/" }],
    ["a message of a different type", { get: "/v1/{child.child.child.id}", input: NestedSchema }],
  ])("%s", (_what, ...rules) => {
    expect(startRefusal(rules)).toBeUndefined();
  });
});

describe("the routes of a transcoder", () => {
  it("are listed in declaration order, with the name of their RPC and binding", () => {
    const { transcoder } = serveRules([
      { get: "/v1/b", additionalBindings: [{ post: "/v1/c", body: "*" }] },
      { custom: { kind: "PURGE", path: "/v1/a" } },
    ]);
    expect(
      transcoder.routes.map(({ httpMethod, template, origin }) => [httpMethod, template.text, origin]),
    ).toEqual([
      ["GET", "/v1/b", "testing.Ruled.Rpc1"],
      ["POST", "/v1/c", "testing.Ruled.Rpc1, additional binding 1"],
      ["PURGE", "/v1/a", "testing.Ruled.Rpc2"],
    ]);
  });

  it("are empty without services, and every path is unknown", async () => {
    const transcoder = createRestServer({ ...defaultBodyLimits, services: [] });
    expect(transcoder.routes).toEqual([]);
    expect((await send(transcoder, "GET /")).status).toBe(404);
  });

  it.each(["GET", "PUT", "POST", "DELETE", "PATCH", "PURGE", "M-SEARCH"])("include %s", async (method) => {
    expect(await received(`${method} /v1/{name}`, `${method} /v1/a`)).toEqual({ name: "a" });
  });
});
