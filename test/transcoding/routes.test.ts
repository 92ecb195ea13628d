import { describe, expect, it } from "vitest";
import { parseTemplate, TemplateError } from "../../src/transcoding/template.ts";
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

/** A template in a form that tests can compare: segments, variables, verb. */
function outline(text: string): string {
  const { segments, variables, verb } = parseTemplate(text);
  const path = segments.map((segment) => {
    if (segment.kind === "literal") return segment.text;
    return segment.kind === "one" ? "*" : "**";
  });
  const bound = variables.map(({ fieldPath, start, end, multiSegment }) => {
    return `${fieldPath.join(".")}=${start}..${end}${multiSegment ? " multi" : ""}`;
  });
  return [path.join(" "), ...bound, ...(verb === "" ? [] : [`:${verb}`])].join(" | ");
}

describe("parseTemplate", () => {
  it.each([
    ["/v1/*/x/*", "v1 * x *"],
    ["/**", "**"],
    ["/*", "*"],
    ["/v1/{name}", "v1 * | name=1..2"],
    ["/{name=**}", "** | name=0..1 multi"],
    ["/v1/{name=a/b/c}", "v1 a b c | name=1..4 multi"],
    ["/v1/{name=shelves/*/**}", "v1 shelves * ** | name=1..4 multi"],
    ["/v1/{a=x/*}/y/{b=z/**}", "v1 x * y z ** | a=1..3 multi | b=4..6 multi"],
    ["/v1/{a.b.c=x/*}", "v1 x * | a.b.c=1..3 multi"],
    ["/v1/messages:archive", "v1 messages | :archive"],
    ["/v1/{name=**}:archive", "v1 ** | name=1..2 multi | :archive"],
    ["/v1/a:batch-get.v2_x~", "v1 a | :batch-get.v2_x~"],
    ["/v1/a-b._~!$&'()+,;=@", "v1 a-b._~!$&'()+,;=@"],
    ["/v1/a%20b%2Fc%3Ad", "v1 a b/c:d"],
    ["/v1/%2A", "v1 *"],
    ["/v1/%7Bname%7D", "v1 {name}"],
    ["/v1/caf%C3%A9:caf%c3%a9", "v1 café | :café"],
    ["/v1/..", "v1 .."],
  ])("reads %s", (template, parsed) => {
    expect(outline(template)).toBe(parsed);
  });

  /** A caret marks the place that the error names. */
  const refused: Readonly<Record<string, readonly string[]>> = {
    "a template begins with a slash": ["^", "^v1", "^{name}", "^*", "^ /v1", "^https://host/v1"],
    "a segment must not be empty": ["/^/", "/^/v1", "/v1/^", "/v1/^/x", "/v1/^:verb", "/v1/{a=x/^}"],
    "a verb follows a segment": ["/^:verb"],
    "a verb must not be empty": ["/v1:^", "/v1/{name}:^"],
    "a verb is a literal": ["/v1:^*", "/v1:^{name}"],
    "a verb comes last, and only once": ["/v1:a^:b", "/v1:a^/b", "/v1:a^/{name}"],
    "a wildcard is * or **, and a whole segment": ["/v1/**^*", "/v1/*^a", "/v1/a^*", "/v1/**^a", "/v1/a^**"],
    "nothing follows **": ["/v1/**/^x", "/v1/**/^**", "/v1/{name=**}/^{id}", "/v1/{name=**/^x}"],
    "a variable has a name": ["/v1/{^", "/v1/{^}", "/v1/{^=*}", "/v1/{^.a}", "/v1/{^*}"],
    "a name follows a dot": ["/v1/{a.^}", "/v1/{a.^.b}"],
    "a name is an identifier": ["/v1/{^1a}", "/v1/{a.^1}", "/v1/{a^-b}", "/v1/{a^ b}", "/v1/{na^ïve}"],
    "a variable ends": ["/v1/{a^", "/v1/{a=*^"],
    "a pattern must not be empty": ["/v1/{a=^", "/v1/{a=^}", "/v1/{a=^/x}"],
    "a variable cannot contain a verb": ["/v1/{a=x^:verb}"],
    "variables do not nest": ["/v1/{a=^{b}}", "/v1/{a=x/^{b}}"],
    "a variable is its whole segment": ["/v1/{a=*}^}", "/v1/{a}^{b}", "/v1/{a}^b", "/v1/x^{a}", "/v1/*^{a}"],
    "a variable occurs only once": ["/v1/{a}/^{a}", "/v1/{a.b}/^{a.b=x/*}"],
    "a closing brace needs an opening one": ["/v1/^}", "/v1/a^}"],
    "other characters are percent-encoded": ["/v1/a^ b", "/v1/a^?b", "/v1/^[a]", "/v1/a^\\b", "/v1/a^\n"],
    "an escape has two digits": ["/v1/^%", "/v1/^a%2", "/v1/^%zz"],
    "escapes are the shortest UTF-8, without surrogates": ["/v1/^%FF", "/v1/^%C0%AF", "/v1/a:^%ED%A0%80"],
  };
  for (const [why, marked] of Object.entries(refused)) {
    it.each(marked)(`rejects %j: ${why}`, (text) => {
      const column = text.indexOf("^") + 1;
      const parse = () => parseTemplate(text.replace("^", ""));
      expect(parse).toThrow(TemplateError);
      expect(parse).toThrow(`column ${column}:`);
    });
  }
});
