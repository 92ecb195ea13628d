import { create, createFileRegistry, setExtension } from "@bufbuild/protobuf";
import {
  Edition,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { http } from "#gen/google/api/annotations_pb.ts";
import { HttpRuleSchema } from "#gen/google/api/http_pb.ts";
import { HttpBodySchema } from "#gen/google/api/httpbody_pb.ts";
import { NestedSchema } from "../gen/testing/kinds_pb.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { send } from "./client.ts";
import { createRestServer } from "./rest-server.ts";
import {
  describeService,
  implementUnary,
  type Rule,
  type RuledRpc,
  received,
  serveRules,
  startRefusal,
} from "./rules.ts";

describe("a rule that could never work prevents the start", () => {
  const refused: [what: string, rule: Rule, named: string[]][] = [
    ["a template that violates the grammar", { get: "/v1/{name" }, ["column 10"]],
    ["an empty template", { get: "" }, ["column 1"]],
    ["a rule without a method and a path", {}, []],
    ["a rule with only a body", { body: "*" }, []],
    ["a custom rule without a method", { custom: { kind: "", path: "/v1" } }, []],
    ["a custom method that is not a token", { custom: { kind: "BAD METHOD", path: "/v1" } }, ["BAD METHOD"]],
    ["a custom rule without a path", { custom: { kind: "PURGE", path: "" } }, ["column 1"]],
    ["a variable of an unknown field", { get: "/v1/{bogus}" }, ["bogus"]],
    ["a variable of an unknown nested field", { get: "/v1/{nested.bogus}" }, ["bogus"]],
    ["a variable by its JSON name", { get: "/v1/{displayName}" }, ["displayName"]],
    ["a variable by its own JSON name", { get: "/v1/{other_name}" }, ["other_name"]],
    ["a variable inside a scalar", { get: "/v1/{name.x}" }, ["name.x"]],
    ["a variable inside an enum", { get: "/v1/{color.x}" }, ["color.x"]],
    ["a repeated variable", { get: "/v1/{tags}" }, ["tags"]],
    ["a repeated variable of a nested message", { get: "/v1/{nested.tags}" }, ["nested.tags"]],
    ["a variable inside a repeated message", { get: "/v1/{nesteds.id}" }, ["nesteds.id"]],
    ["a map variable", { get: "/v1/{labels}" }, ["labels"]],
    ["a variable inside a map", { get: "/v1/{nested_by_number.id}" }, ["nested_by_number.id"]],
    ["a message variable", { get: "/v1/{nested}" }, ["nested"]],
    ["a message variable at the end of a path", { get: "/v1/{nested.child}" }, ["nested.child"]],
    ["a variable of type Any", { get: "/v1/{any}" }, ["any"]],
    ["a variable of type Empty", { get: "/v1/{empty}" }, ["empty"]],
    ["a variable of type HttpBody", { get: "/v1/{raw}" }, ["raw"]],
    ["a variable of type Struct", { get: "/v1/{struct}" }, ["struct"]],
    ["a variable of type Value", { get: "/v1/{value}" }, ["value"]],
    ["a variable of type ListValue", { get: "/v1/{list}" }, ["list"]],
    ["one variable twice", { get: "/v1/{name}/{name}" }, ["name"]],
    ["one nested variable twice", { get: "/v1/{nested.id}/{nested.id=x/*}" }, ["nested.id"]],
    ["two variables of one oneof", { get: "/v1/{text}/{number}" }, ["text", "number"]],
    ["two variables inside one oneof", { get: "/v1/{text}/{part.id}" }, ["text", "part"]],
    ["two variables of one nested oneof", { get: "/v1/{nested.first}/{nested.second}" }, ["first", "second"]],
    ["a variable in a variable", { get: "/v1/{name={display_name}}" }, ["column"]],
    ["anything after **", { get: "/v1/{name=**}/x" }, ["column"]],
    ["an unknown body field", { post: "/v1", body: "bogus" }, ["bogus"]],
    ["a body field below the top level", { post: "/v1", body: "nested.id" }, ["nested.id"]],
    ["a body field by its JSON name", { post: "/v1", body: "displayName" }, ["displayName"]],
    ["a GET body", { get: "/v1", body: "*" }, ["GET"]],
    ["a GET body field", { get: "/v1", body: "nested" }, ["GET"]],
    ["a HEAD body", { custom: { kind: "HEAD", path: "/v1" }, body: "*" }, ["HEAD"]],
    ["an unknown response_body", { get: "/v1", responseBody: "bogus" }, ["bogus"]],
    ["a response_body below the top level", { get: "/v1", responseBody: "nested.id" }, ["nested.id"]],
    ["a response_body of everything", { get: "/v1", responseBody: "*" }, ["*"]],
    [
      "nested additional bindings",
      { get: "/v1", additionalBindings: [{ get: "/v2", additionalBindings: [{ get: "/v3" }] }] },
      ["additional binding 1"],
    ],
    [
      "an impossible additional binding",
      { get: "/v1", additionalBindings: [{ get: "/v2" }, { get: "/v3/{bogus}" }] },
      ["additional binding 2", "bogus"],
    ],
  ];
  for (const [what, rule, named] of refused) {
    it(`${what}, and is named in the error`, () => {
      const sentence = startRefusal([rule]);
      for (const part of ["testing.Ruled1.Rpc1", ...named]) expect(sentence).toContain(part);
    });
  }

  const primitive: [field: string, type: string][] = [
    ["timestamp", "Timestamp"],
    ["duration", "Duration"],
    ["mask", "FieldMask"],
    ["string_wrapper", "StringValue"],
    ["int64_wrapper", "Int64Value"],
  ];
  for (const [field, type] of primitive) {
    it(`a variable of type ${type}: http.proto allows "a primitive (non-message) type"`, () => {
      expect(startRefusal([{ get: `/v1/{${field}}` }])).toContain(field);
    });
  }

  it("a body field that is already in the path", () => {
    expect(startRefusal([{ post: "/v1/{name}", body: "name" }])).toContain("name");
  });

  it("a body field of a oneof that is already in the path", () => {
    expect(startRefusal([{ post: "/v1/{text}", body: "part" }])).toContain("text");
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

describe("two rules that match the same requests prevent the start, and the error names both places", () => {
  const conflicts: [what: string, one: Rule, other: Rule][] = [
    ["the same literals", { get: "/v1/x" }, { get: "/v1/x" }],
    ["variables with different names", { get: "/v1/{name}" }, { get: "/v1/{display_name}" }],
    ["a variable and a wildcard", { get: "/v1/{name}" }, { get: "/v1/*" }],
    ["a variable and its literals spelled out", { get: "/v1/{name=x/*}" }, { get: "/v1/x/{name}" }],
    ["a variable of literals and literals", { get: "/v1/{name=x/y}" }, { get: "/v1/x/y" }],
    ["two rests", { get: "/v1/{name=**}" }, { get: "/v1/**" }],
    ["a rest under literals", { get: "/v1/{name=x/**}" }, { get: "/v1/x/{display_name=**}" }],
    ["the same verb", { post: "/v1/{name}:go" }, { post: "/v1/*:go" }],
    ["literals that differ only in their encoding", { get: "/v1/caf%C3%A9" }, { get: "/v1/caf%c3%a9" }],
    ["literals, one of them encoded needlessly", { get: "/v1/%61" }, { get: "/v1/a" }],
    ["verbs, one of them encoded needlessly", { get: "/v1:%61" }, { get: "/v1:a" }],
    [
      "a method and the same method as a custom one",
      { get: "/v1" },
      { custom: { kind: "GET", path: "/v1" } },
    ],
    [
      "any method twice",
      { custom: { kind: "*", path: "/v1/{name}" } },
      { custom: { kind: "*", path: "/v1/*" } },
    ],
    ["different bodies", { post: "/v1", body: "*" }, { post: "/v1" }],
  ];
  for (const [what, one, other] of conflicts) {
    it(`${what}, in one service`, () => {
      const sentence = startRefusal([one, other]);
      expect(sentence).toContain("testing.Ruled1.Rpc1");
      expect(sentence).toContain("testing.Ruled1.Rpc2");
    });
    it(`${what}, in two services`, () => {
      const sentence = startRefusal([one], [other]);
      expect(sentence).toContain("testing.Ruled1.Rpc1");
      expect(sentence).toContain("testing.Ruled2.Rpc1");
    });
    it(`${what}, in one rule and its additional binding`, () => {
      const sentence = startRefusal([{ ...one, additionalBindings: [other] }]);
      expect(sentence).toContain("testing.Ruled1.Rpc1");
      expect(sentence).toContain("testing.Ruled1.Rpc1, additional binding 1");
    });
  }
});

describe("rules that differ are accepted", () => {
  const pairs: [what: string, one: Rule, other: Rule][] = [
    ["different methods", { get: "/v1/{name}" }, { delete: "/v1/{name}" }],
    ["a method and any method", { get: "/v1" }, { custom: { kind: "*", path: "/v1" } }],
    ["GET and a HEAD of its own", { get: "/v1" }, { custom: { kind: "HEAD", path: "/v1" } }],
    ["a literal and a variable", { get: "/v1/x" }, { get: "/v1/{name}" }],
    ["one segment and the rest", { get: "/v1/*" }, { get: "/v1/**" }],
    ["a verb and no verb", { get: "/v1/{name}:go" }, { get: "/v1/{name}" }],
    ["different verbs", { get: "/v1/{name}:go" }, { get: "/v1/{name}:stop" }],
    ["verbs in different case", { get: "/v1/{name}:go" }, { get: "/v1/{name}:Go" }],
    ["crossed literals", { get: "/v1/x/*" }, { get: "/v1/*/x" }],
    ["nothing and the rest", { get: "/v1" }, { get: "/v1/**" }],
    ["an encoded slash and a slash", { get: "/v1/a%2Fb" }, { get: "/v1/a/b" }],
  ];
  for (const [what, one, other] of pairs) {
    it(what, () => {
      expect(startRefusal([one, other])).toBeUndefined();
    });
  }

  const allowed: [what: string, rule: RuledRpc][] = [
    ["a DELETE body", { delete: "/v1", body: "*" }],
    ["a body with any method", { custom: { kind: "*", path: "/v1" }, body: "*" }],
    ["a variable inside the body field", { patch: "/v1/{nested.id}", body: "nested" }],
    ["a variable of a oneof", { get: "/v1/{part.id}/{part.long_name}" }],
    ["a variable with presence", { get: "/v1/{nickname}/{optional_count}" }],
    ["HttpBody as the whole request", { post: "/v1", body: "*", input: HttpBodySchema }],
    ["the root", { get: "/" }],
    ["a message of a different type", { get: "/v1/{child.child.child.id}", input: NestedSchema }],
  ];
  for (const [what, rule] of allowed) {
    it(what, () => {
      expect(startRefusal([rule])).toBeUndefined();
    });
  }
});

describe("the routes of a transcoder", () => {
  it("are listed in declaration order, additional bindings after their rule", () => {
    const { transcoder } = serveRules([
      { get: "/v1/b", additionalBindings: [{ post: "/v1/c", body: "*" }] },
      { custom: { kind: "PURGE", path: "/v1/a" } },
    ]);
    const lines = transcoder.routes.map(({ httpMethod, template }) => `${httpMethod} ${template.text}`);
    expect(lines).toEqual(["GET /v1/b", "POST /v1/c", "PURGE /v1/a"]);
  });

  it("name their RPC and binding", () => {
    const { transcoder } = serveRules([{ get: "/v1/b", additionalBindings: [{ get: "/v1/c" }] }]);
    expect(transcoder.routes.map(({ origin }) => origin)).toEqual([
      "testing.Ruled.Rpc1",
      "testing.Ruled.Rpc1, additional binding 1",
    ]);
  });

  it("come from every service", async () => {
    const services = [
      describeService([{ get: "/v1/one" }], "testing.One"),
      describeService([{ get: "/v1/two" }], "testing.Two"),
    ];
    const transcoder = createRestServer({
      ...defaultBodyLimits,
      services: services.map((service) => implementUnary(service, () => () => ({}))),
    });
    expect((await send(transcoder, "GET /v1/one")).status).toBe(200);
    expect((await send(transcoder, "GET /v1/two")).status).toBe(200);
  });

  it("are empty without services, and every path is unknown", async () => {
    const transcoder = createRestServer({ ...defaultBodyLimits, services: [] });
    expect(transcoder.routes).toEqual([]);
    expect((await send(transcoder, "GET /")).status).toBe(404);
  });

  it("include a rule for each method", async () => {
    const rules: Record<string, Rule> = {
      GET: { get: "/v1/{name}" },
      PUT: { put: "/v1/{name}" },
      POST: { post: "/v1/{name}" },
      DELETE: { delete: "/v1/{name}" },
      PATCH: { patch: "/v1/{name}" },
      PURGE: { custom: { kind: "PURGE", path: "/v1/{name}" } },
      "M-SEARCH": { custom: { kind: "M-SEARCH", path: "/v1/{name}" } },
    };
    for (const [method, rule] of Object.entries(rules)) {
      expect(await received(rule, `${method} /v1/a`)).toEqual({ name: "a" });
    }
  });
});

describe("a service in Edition 2026", () => {
  it("is served like a proto3 service", async () => {
    const field = (name: string, number: number, type: FieldDescriptorProto_Type) => ({
      name,
      number,
      type,
      jsonName: name,
    });
    const { STRING, INT32 } = FieldDescriptorProto_Type;
    const options = create(MethodOptionsSchema);
    setExtension(options, http, create(HttpRuleSchema, { pattern: { case: "get", value: "/v1/{name}" } }));
    const file = create(FileDescriptorProtoSchema, {
      name: "edition.proto",
      package: "testing.edition",
      syntax: "editions",
      edition: Edition.EDITION_2026,
      messageType: [{ name: "Thing", field: [field("name", 1, STRING), field("count", 2, INT32)] }],
      service: [
        {
          name: "Things",
          method: [
            {
              name: "Get",
              inputType: ".testing.edition.Thing",
              outputType: ".testing.edition.Thing",
              options,
            },
          ],
        },
      ],
    });
    const service = createFileRegistry(file, () => undefined).getService("testing.edition.Things");
    if (service === undefined) throw new Error("the service was not built");
    const echo = implementUnary(service, () => (message) => ({ ...message }));
    const transcoder = createRestServer({ ...defaultBodyLimits, services: [echo] });
    expect(await send(transcoder, "GET /v1/a?count=0")).toMatchObject({
      status: 200,
      text: '{"name":"a","count":0}\n',
    });
  });
});
