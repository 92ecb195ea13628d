import { describe, expect, it } from "vitest";
import { HttpBodySchema } from "#gen/google/api/httpbody_pb.ts";
import { chunked } from "./client.ts";
import { invalid, outcome, type Rule, type RuledRpc, received } from "./rules.ts";

const bound = (rule: RuledRpc, line: string, body?: string) =>
  received(rule, line, body === undefined ? {} : { body });

describe("path, query and body fill one request", () => {
  const rows: [what: string, rule: Rule, line: string, body: string | undefined, request: object][] = [
    ["path alone", { get: "/v1/{name}" }, "GET /v1/a", undefined, { name: "a" }],
    [
      "path and query",
      { get: "/v1/{name}" },
      "GET /v1/a?displayName=b&tags=c",
      undefined,
      { name: "a", displayName: "b", tags: ["c"] },
    ],
    [
      "several variables",
      { get: "/v1/{nested.id}/x/{nested.child.id=y/*}" },
      "GET /v1/a/x/y/b",
      undefined,
      { nested: { id: "a", child: { id: "y/b" } } },
    ],
    [
      "path and query in one message",
      { get: "/v1/{nested.id}" },
      "GET /v1/a?nested.count=2",
      undefined,
      { nested: { id: "a", count: "2" } },
    ],
    [
      "path and body",
      { post: "/v1/{name}", body: "*" },
      "POST /v1/a",
      '{"displayName":"b"}',
      { name: "a", displayName: "b" },
    ],
    [
      "path inside the body's message",
      { post: "/v1/{nested.id}", body: "*" },
      "POST /v1/a",
      '{"nested":{"count":2},"name":"b"}',
      { nested: { id: "a", count: "2" }, name: "b" },
    ],
    [
      "path inside a message that the body does not have",
      { post: "/v1/{nested.child.id}", body: "*" },
      "POST /v1/a",
      "{}",
      { nested: { child: { id: "a" } } },
    ],
    [
      "path, body field and query",
      { post: "/v1/{name}", body: "nested" },
      "POST /v1/a?displayName=b",
      '{"id":"c"}',
      { name: "a", displayName: "b", nested: { id: "c" } },
    ],
    [
      "path inside the body field",
      { patch: "/v1/{nested.id}", body: "nested" },
      "PATCH /v1/a",
      '{"longName":"b"}',
      { nested: { id: "a", longName: "b" } },
    ],
    ["no body where one may be", { post: "/v1/{name}", body: "*" }, "POST /v1/a", undefined, { name: "a" }],
    ["an empty body where one may be", { post: "/v1/{name}", body: "*" }, "POST /v1/a", "", { name: "a" }],
    [
      "no body field where one may be",
      { post: "/v1/{name}", body: "nested" },
      "POST /v1/a",
      undefined,
      { name: "a" },
    ],
    [
      "an empty body field where one may be",
      { post: "/v1/{name}", body: "nested" },
      "POST /v1/a",
      "",
      { name: "a" },
    ],
    ["an empty body where none may be", { post: "/v1/{name}" }, "POST /v1/a", "", { name: "a" }],
    [
      "a body of DELETE",
      { delete: "/v1/{name}", body: "*" },
      "DELETE /v1/a",
      '{"int32Value":1}',
      { name: "a", int32Value: 1 },
    ],
    [
      "query without a body rule, whatever the method",
      { post: "/v1/{name}" },
      "POST /v1/a?int32Value=1",
      undefined,
      { name: "a", int32Value: 1 },
    ],
  ];
  for (const [what, rule, line, body, request] of rows) {
    it(what, async () => {
      expect(await bound(rule, line, body)).toEqual(request);
    });
  }
});

describe("a body field can be of any kind", () => {
  const rows: [field: string, body: string, request: object][] = [
    ["nested", '{"id":"a","child":{"count":"1"}}', { nested: { id: "a", child: { count: "1" } } }],
    ["nested", "{}", { nested: {} }],
    ["nested", "null", {}],
    ["name", '"a"', { name: "a" }],
    ["display_name", '"a"', { displayName: "a" }],
    ["renamed", '"a"', { "other-name": "a" }],
    ["int32_value", "5", { int32Value: 5 }],
    ["int32_value", " 5\n", { int32Value: 5 }],
    ["int64_value", '"9007199254740993"', { int64Value: "9007199254740993" }],
    ["bool_value", "true", { boolValue: true }],
    ["double_value", '"NaN"', { doubleValue: "NaN" }],
    ["bytes_value", '"AQI="', { bytesValue: "AQI=" }],
    ["color", '"RED"', { color: "RED" }],
    ["nickname", '""', { nickname: "" }],
    ["tags", '["a","b"]', { tags: ["a", "b"] }],
    ["tags", "[]", {}],
    ["nesteds", '[{"id":"a"},{}]', { nesteds: [{ id: "a" }, {}] }],
    ["labels", '{"a":"b"}', { labels: { a: "b" } }],
    ["labels", '{"__proto__":"b"}', { labels: JSON.parse('{"__proto__":"b"}') }],
    ["nested_by_number", '{"1":{"id":"a"}}', { nestedByNumber: { 1: { id: "a" } } }],
    ["timestamp", '"2026-11-21T08:00:00Z"', { timestamp: "2026-11-21T08:00:00Z" }],
    ["struct", '{"a":null}', { struct: { a: null } }],
    ["value", "null", { value: null }],
    ["value", '{"a":[1]}', { value: { a: [1] } }],
    ["list", "[1]", { list: [1] }],
    ["string_wrapper", '""', { stringWrapper: "" }],
    ["text", '"a"', { text: "a" }],
    ["part", '{"id":"a"}', { part: { id: "a" } }],
    ["empty", "{}", { empty: {} }],
    [
      "any",
      '{"@type":"type.googleapis.com/testing.Nested","id":"a"}',
      { any: { "@type": "type.googleapis.com/testing.Nested", id: "a" } },
    ],
  ];
  for (const [field, body, request] of rows) {
    it(`${field}: ${body.trim()}`, async () => {
      expect(await bound({ post: "/v1", body: field }, "POST /v1", body)).toEqual(request);
    });
  }

  const breakouts = ['1},"name":"x"', '"a","name":"b"', '"a"}{"b":1', "1 2", "{", '"a" // b'];
  for (const body of breakouts) {
    it(`and nothing else of the message: ${body}`, async () => {
      const rule = { post: "/v1", body: "value" };
      expect(await bound(rule, "POST /v1", body)).toEqual(invalid("JSON_INVALID"));
    });
  }
});

describe("raw bodies (google.api.HttpBody)", () => {
  const headers = { "content-type": "image/png" };
  const bytes = Uint8Array.of(0, 255, 123);

  it("can be the whole request", async () => {
    const rule = { post: "/v1", body: "*", input: HttpBodySchema };
    const request = await received(rule, "POST /v1", { headers, body: bytes });
    expect(request).toEqual({ contentType: "image/png", data: "AP97" });
  });

  it("can be one field beside path and query", async () => {
    const rule = { put: "/v1/{name}", body: "raw" };
    const request = await received(rule, "PUT /v1/a?displayName=b", { headers, body: bytes });
    expect(request).toEqual({ name: "a", displayName: "b", raw: { contentType: "image/png", data: "AP97" } });
  });

  it("keep the parameters of their media type", async () => {
    const rule = { put: "/v1", body: "raw" };
    const contentType = 'Text/Plain; charset="ISO-8859-1"';
    const request = await received(rule, "PUT /v1", {
      headers: { "content-type": contentType },
      body: bytes,
    });
    expect(request).toEqual({ raw: { contentType, data: "AP97" } });
  });

  it("without a media type are bytes", async () => {
    const request = await received({ put: "/v1", body: "raw" }, "PUT /v1", { body: bytes });
    expect(request).toEqual({ raw: { contentType: "application/octet-stream", data: "AP97" } });
  });

  it("are not parsed, even if they say they are JSON", async () => {
    const rule = { put: "/v1", body: "raw" };
    const request = await received(rule, "PUT /v1", {
      headers: { "content-type": "application/json" },
      body: "{",
    });
    expect(request).toEqual({ raw: { contentType: "application/json", data: "ew==" } });
  });

  it("take no query where they are everything", async () => {
    const rule = { post: "/v1", body: "*", input: HttpBodySchema };
    const result = await received(rule, "POST /v1?contentType=a", { body: bytes });
    expect(result).toEqual(invalid("PARAMETER_UNKNOWN", "contentType"));
  });
});

describe("a body for a call without one is refused, for what it says would be lost", () => {
  const rules: [line: string, rule: Rule][] = [
    ["GET /v1", { get: "/v1" }],
    ["DELETE /v1", { delete: "/v1" }],
    ["POST /v1", { post: "/v1" }],
    ["PURGE /v1", { custom: { kind: "PURGE", path: "/v1" } }],
  ];
  for (const [line, rule] of rules) {
    it(line, async () => {
      expect(await bound(rule, line, "{}")).toEqual(invalid("BODY_UNEXPECTED"));
    });
  }

  it("also if it begins with nothing", async () => {
    const result = await received({ get: "/v1" }, "GET /v1", { body: chunked("", "", "{}") });
    expect(result).toEqual(invalid("BODY_UNEXPECTED"));
  });
});

describe("a field that two places give different values is refused", () => {
  const everything = { post: "/v1/{name}", body: "*" };
  const count = { post: "/v1/{int32_value}", body: "*" };
  const inField = { post: "/v1/{nested.id}", body: "nested" };
  const rows: [what: string, rule: Rule, line: string, body: string | undefined, field: string][] = [
    ["path and body", everything, "POST /v1/a", '{"name":"b"}', "name"],
    ["path and empty body field", everything, "POST /v1/a", '{"name":""}', "name"],
    ["path and body, a number", count, "POST /v1/1", '{"int32Value":2}', "int32Value"],
    ["path and body, zero in the path", count, "POST /v1/0", '{"int32Value":2}', "int32Value"],
    ["path and body, zero in the body", count, "POST /v1/1", '{"int32Value":0}', "int32Value"],
    [
      "path and nested body",
      { post: "/v1/{nested.id}", body: "*" },
      "POST /v1/a",
      '{"nested":{"id":"b"}}',
      "nested.id",
    ],
    ["path and body field", inField, "POST /v1/a", '{"id":"b"}', "nested.id"],
    ["path and query", { get: "/v1/{name}" }, "GET /v1/a?name=b", undefined, "name"],
    ["path and query, empty", { get: "/v1/{name}" }, "GET /v1/a?name=", undefined, "name"],
    [
      "path and query, zero in the query",
      { get: "/v1/{int32_value}" },
      "GET /v1/1?int32Value=0",
      undefined,
      "int32Value",
    ],
    [
      "path and query, zero in the path",
      { get: "/v1/{int32_value}" },
      "GET /v1/0?int32Value=1",
      undefined,
      "int32Value",
    ],
    [
      "path and query, false in the path",
      { get: "/v1/{bool_value}" },
      "GET /v1/false?boolValue=true",
      undefined,
      "boolValue",
    ],
    [
      "path and query, zero enum in the path",
      { get: "/v1/{color}" },
      "GET /v1/0?color=RED",
      undefined,
      "color",
    ],
    ["path and query, no segments", { get: "/v1/{name=**}" }, "GET /v1?name=a", undefined, "name"],
    ["path and query, nested", { get: "/v1/{nested.id}" }, "GET /v1/a?nested.id=b", undefined, "nested.id"],
    [
      "path and query, by the proto name",
      { get: "/v1/{display_name}" },
      "GET /v1/a?display_name=b",
      undefined,
      "displayName",
    ],
    [
      "path and query, with presence",
      { get: "/v1/{optional_count}" },
      "GET /v1/0?optionalCount=1",
      undefined,
      "optionalCount",
    ],
    ["query and body field", { post: "/v1", body: "name" }, "POST /v1?name=a", '"b"', "name"],
    ["query and repeated body field", { post: "/v1", body: "tags" }, "POST /v1?tags=a", '["a","b"]', "tags"],
    [
      "query and nested body field",
      { post: "/v1", body: "nested" },
      "POST /v1?nested.id=a",
      '{"id":"b"}',
      "nested.id",
    ],
    [
      "query and zero body field",
      { post: "/v1", body: "int32_value" },
      "POST /v1?int32Value=1",
      "0",
      "int32Value",
    ],
    [
      "zero query and body field",
      { post: "/v1", body: "int32_value" },
      "POST /v1?int32Value=0",
      "1",
      "int32Value",
    ],
  ];
  for (const [what, rule, line, body, field] of rows) {
    it(`${what}: ${line}${body === undefined ? "" : ` with ${body}`}`, async () => {
      expect(await bound(rule, line, body)).toEqual(invalid("FIELD_CONTRADICTION", field));
    });
  }
});

describe("a query parameter for what the body is, is refused", () => {
  const rows: [what: string, line: string, body: string | undefined, field: string][] = [
    ["another field of the body", "POST /v1?nested.count=9", '{"id":"a"}', "nested.count"],
    ["the same value as in the body", "POST /v1?nested.id=a", '{"id":"a"}', "nested.id"],
    ["a field of a message in the body", "POST /v1?nested.child.id=a", "{}", "nested.child.id"],
    ["without a body", "POST /v1?nested.id=a", undefined, "nested.id"],
    ["by the names of the proto", "POST /v1?nested.long_name=a", "{}", "nested.longName"],
  ];
  for (const [what, line, body, field] of rows) {
    it(`${what}: ${line}`, async () => {
      const rule = { post: "/v1", body: "nested" };
      expect(await bound(rule, line, body)).toEqual(invalid("FIELD_CONTRADICTION", field));
    });
  }

  it("as a whole, where the body leaves it out", async () => {
    const result = await bound({ post: "/v1", body: "tags" }, "POST /v1?tags=a");
    expect(result).toEqual(invalid("FIELD_CONTRADICTION", "tags"));
  });
});

describe("a field that two places give one value is accepted", () => {
  const rows: [what: string, rule: Rule, line: string, body: string | undefined, request: object][] = [
    ["path and body", { post: "/v1/{name}", body: "*" }, "POST /v1/a", '{"name":"a"}', { name: "a" }],
    [
      "path and null in the body",
      { post: "/v1/{name}", body: "*" },
      "POST /v1/a",
      '{"name":null}',
      { name: "a" },
    ],
    [
      "path and body, decoded",
      { post: "/v1/{name}", body: "*" },
      "POST /v1/a%2Fb",
      '{"name":"a/b"}',
      { name: "a/b" },
    ],
    ["path and body, zero", { post: "/v1/{int32_value}", body: "*" }, "POST /v1/0", '{"int32Value":0}', {}],
    [
      "path and body, other spellings",
      { post: "/v1/{int64_value}", body: "*" },
      "POST /v1/007",
      '{"int64Value":"7"}',
      { int64Value: "7" },
    ],
    [
      "path and body, NaN",
      { post: "/v1/{double_value}", body: "*" },
      "POST /v1/NaN",
      '{"doubleValue":"NaN"}',
      { doubleValue: "NaN" },
    ],
    [
      "path and body, an enum by number",
      { post: "/v1/{color}", body: "*" },
      "POST /v1/1",
      '{"color":"RED"}',
      { color: "RED" },
    ],
    [
      "path and body field",
      { post: "/v1/{nested.id}", body: "nested" },
      "POST /v1/a",
      '{"id":"a"}',
      { nested: { id: "a" } },
    ],
    ["path and query", { get: "/v1/{name}" }, "GET /v1/a?name=a", undefined, { name: "a" }],
    [
      "query and body field",
      { post: "/v1", body: "tags" },
      "POST /v1?tags=a&tags=b",
      '["a","b"]',
      { tags: ["a", "b"] },
    ],
    [
      "path in a oneof and body",
      { post: "/v1/{text}", body: "*" },
      "POST /v1/a",
      '{"text":"a"}',
      { text: "a" },
    ],
  ];
  for (const [what, rule, line, body, request] of rows) {
    it(`${what}: ${line}${body === undefined ? "" : ` with ${body}`}`, async () => {
      expect(await bound(rule, line, body)).toEqual(request);
    });
  }
});

describe("a oneof that is set twice is refused", () => {
  const rows: [what: string, rule: Rule, line: string, body: string | undefined, field: string][] = [
    ["in the query", { get: "/v1" }, "GET /v1?text=a&number=1", undefined, "number"],
    ["in the query, empty", { get: "/v1" }, "GET /v1?text=&number=0", undefined, "number"],
    ["in the query, a message last", { get: "/v1" }, "GET /v1?text=a&part.id=b", undefined, "part.id"],
    ["in the query, a message first", { get: "/v1" }, "GET /v1?part.id=b&text=a", undefined, "text"],
    ["in the query, a wrapper", { get: "/v1" }, "GET /v1?wrapped=b&text=a", undefined, "text"],
    [
      "in the query, nested",
      { get: "/v1" },
      "GET /v1?nested.first=b&nested.second=a",
      undefined,
      "nested.second",
    ],
    ["in path and query", { get: "/v1/{text}" }, "GET /v1/a?number=1", undefined, "number"],
    ["in path and body", { post: "/v1/{text}", body: "*" }, "POST /v1/a", '{"number":"1"}', "text"],
    ["in path and body, zero", { post: "/v1/{text}", body: "*" }, "POST /v1/a", '{"number":"0"}', "text"],
    [
      "in path and body, a message",
      { post: "/v1/{part.id}", body: "*" },
      "POST /v1/a",
      '{"text":"b"}',
      "part.id",
    ],
    ["in query and body field", { post: "/v1", body: "text" }, "POST /v1?number=1", '"a"', "number"],
  ];
  for (const [what, rule, line, body, field] of rows) {
    it(`${what}: ${line}${body === undefined ? "" : ` with ${body}`}`, async () => {
      expect(await bound(rule, line, body)).toEqual(invalid("FIELD_CONTRADICTION", field));
    });
  }

  it("in the body", async () => {
    const result = await bound({ post: "/v1", body: "*" }, "POST /v1", '{"text":"a","number":"1"}');
    expect(result).toMatchObject({ status: 400, code: "INVALID_ARGUMENT", fields: ["choice"] });
  });
});

describe("a path variable has the type of its field", () => {
  const good: [field: string, text: string, request: object][] = [
    ["bool_value", "true", { boolValue: true }],
    ["int32_value", "-7", { int32Value: -7 }],
    ["int64_value", "9223372036854775807", { int64Value: "9223372036854775807" }],
    ["uint64_value", "18446744073709551615", { uint64Value: "18446744073709551615" }],
    ["double_value", "-1.5e3", { doubleValue: -1500 }],
    ["color", "RED", { color: "RED" }],
    ["color", "2", { color: "GREEN" }],
    ["bytes_value", "-_8", { bytesValue: "+/8=" }],
    ["bytes_value", "%2B%2F8%3D", { bytesValue: "+/8=" }],
    ["optional_count", "0", { optionalCount: 0 }],
    ["nickname", "a", { nickname: "a" }],
    ["number", "0", { number: "0" }],
    ["nested.count", "5", { nested: { count: "5" } }],
    ["renamed", "a", { "other-name": "a" }],
  ];
  for (const [field, text, request] of good) {
    it(`${field} takes ${text}`, async () => {
      expect(await bound({ get: `/v1/{${field}}` }, `GET /v1/${text}`)).toEqual(request);
    });
  }

  const bad: [field: string, text: string, named: string][] = [
    ["bool_value", "1", "boolValue"],
    ["int32_value", "a", "int32Value"],
    ["int32_value", "1.5", "int32Value"],
    ["int32_value", "2147483648", "int32Value"],
    ["uint32_value", "-1", "uint32Value"],
    ["int64_value", "9223372036854775808", "int64Value"],
    ["double_value", "x", "doubleValue"],
    ["color", "BLUE", "color"],
    ["bytes_value", "A", "bytesValue"],
    ["nested.count", "x", "nested.count"],
  ];
  for (const [field, text, named] of bad) {
    it(`${field} refuses ${text}`, async () => {
      const result = await bound({ get: `/v1/{${field}}` }, `GET /v1/${text}`);
      expect(result).toEqual(invalid("FIELD_INVALID", named));
    });
  }
});

describe("additional bindings", () => {
  const rule: RuledRpc = {
    get: "/v1/messages/{name}",
    additionalBindings: [
      { get: "/v1/users/{nested.id}/messages/{name}" },
      { post: "/v1/messages/{name}:send", body: "nested", responseBody: "name" },
      { custom: { kind: "PURGE", path: "/v1/messages" }, body: "*" },
    ],
  };
  const rows: [line: string, body: string | undefined, request: object][] = [
    ["GET /v1/messages/1", undefined, { name: "1" }],
    ["GET /v1/users/me/messages/1", undefined, { name: "1", nested: { id: "me" } }],
    [
      "GET /v1/users/me/messages/1?nested.count=2",
      undefined,
      { name: "1", nested: { id: "me", count: "2" } },
    ],
    ["POST /v1/messages/1:send", '{"id":"a"}', { name: "1", nested: { id: "a" } }],
    ["PURGE /v1/messages", '{"tags":["a"]}', { tags: ["a"] }],
  ];
  for (const [line, body, request] of rows) {
    it(`${line} is the same RPC`, async () => {
      expect(await outcome([rule], line, body === undefined ? {} : { body })).toEqual({
        rpc: "Rpc1",
        request,
      });
    });
  }
});
