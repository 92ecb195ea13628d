import { describe, expect, it } from "vitest";
import { HttpBodySchema } from "#gen/google/api/httpbody_pb.ts";
import { chunked } from "./client.ts";
import { invalid, type RuledRpc, received, type WrittenRule } from "./rules.ts";

/** Sends a request such as "POST /v1/a", or with a body 'POST /v1/a {"name":"b"}'. */
function bound(rule: WrittenRule, request: string) {
  const [, line = "", body] = /^(\S+ \S+)(?: (.*))?$/s.exec(request) ?? [];
  return received(rule, line, body === undefined ? {} : { body });
}

type Accepted = [rule: string, request: string, expected: object];
type Refused = [rule: string, request: string, field: string];

describe("path, query and body fill one request", () => {
  it.each<Accepted>([
    ["GET /v1/{name}", "GET /v1/a?displayName=b&tags=c", { name: "a", displayName: "b", tags: ["c"] }],
    [
      "GET /v1/{nested.id}/x/{nested.child.id=y/*}",
      "GET /v1/a/x/y/b",
      { nested: { id: "a", child: { id: "y/b" } } },
    ],
    ["POST /v1/{name} body: *", 'POST /v1/a {"displayName":"b"}', { name: "a", displayName: "b" }],
    [
      "POST /v1/{nested.id} body: *",
      'POST /v1/a {"nested":{"count":2}}',
      { nested: { id: "a", count: "2" } },
    ],
    ["POST /v1/{nested.child.id} body: *", "POST /v1/a {}", { nested: { child: { id: "a" } } }],
    [
      "POST /v1/{name} body: nested",
      'POST /v1/a?tags=b {"id":"c"}',
      { name: "a", tags: ["b"], nested: { id: "c" } },
    ],
    ["DELETE /v1/{name} body: *", 'DELETE /v1/a {"int32Value":1}', { name: "a", int32Value: 1 }],
    ["POST /v1/{name}", "POST /v1/a?int32Value=1", { name: "a", int32Value: 1 }],
    // A body is optional, even an empty one.
    ["POST /v1/{name} body: *", "POST /v1/a", { name: "a" }],
    ["POST /v1/{name} body: *", "POST /v1/a ", { name: "a" }],
    ["POST /v1/{name} body: nested", "POST /v1/a", { name: "a" }],
    ["POST /v1/{name} body: nested", "POST /v1/a ", { name: "a" }],
    ["POST /v1/{name}", "POST /v1/a ", { name: "a" }],
  ])("%s: %s", async (rule, request, expected) => {
    expect(await bound(rule, request)).toEqual(expected);
  });
});

describe("a body field can be of any kind", () => {
  it.each<[field: string, body: string, request: object]>([
    ["nested", '{"id":"a","child":{"count":"1"}}', { nested: { id: "a", child: { count: "1" } } }],
    ["nested", "null", {}],
    ["renamed", '"a"', { "other-name": "a" }],
    ["int32_value", " 5\n", { int32Value: 5 }],
    ["bool_value", "true", { boolValue: true }],
    ["bytes_value", '"AQI="', { bytesValue: "AQI=" }],
    ["color", '"RED"', { color: "RED" }],
    ["nickname", '""', { nickname: "" }],
    ["tags", '["a","b"]', { tags: ["a", "b"] }],
    ["nesteds", '[{"id":"a"},{}]', { nesteds: [{ id: "a" }, {}] }],
    ["labels", '{"__proto__":"b"}', { labels: JSON.parse('{"__proto__":"b"}') }],
    ["nested_by_number", '{"1":{"id":"a"}}', { nestedByNumber: { 1: { id: "a" } } }],
    ["timestamp", '"2026-11-21T08:00:00Z"', { timestamp: "2026-11-21T08:00:00Z" }],
    ["value", "null", { value: null }],
    ["string_wrapper", '""', { stringWrapper: "" }],
    ["empty", "{}", { empty: {} }],
    ["any", '{"@type":"t/testing.Nested","id":"a"}', { any: expect.objectContaining({ id: "a" }) }],
  ])("%s: %s", async (field, body, request) => {
    expect(await bound(`POST /v1 body: ${field}`, `POST /v1 ${body}`)).toEqual(request);
  });

  it.each(['1},"name":"x"', '"a","name":"b"', '"a"}{"b":1', "1 2", "{", '"a" // b'])(
    "and contains nothing else of the message: %s",
    async (body) => {
      expect(await bound("POST /v1 body: value", `POST /v1 ${body}`)).toEqual(invalid("JSON_INVALID"));
    },
  );
});

describe("raw bodies (google.api.HttpBody)", () => {
  const whole: RuledRpc = { post: "/v1", body: "*", input: HttpBodySchema };
  const body = Uint8Array.of(0, 255, 123);

  it("can be the whole request", async () => {
    const request = await received(whole, "POST /v1", { headers: { "content-type": "image/png" }, body });
    expect(request).toEqual({ contentType: "image/png", data: "AP97" });
  });

  it.each<[what: string, headers: Record<string, string>, contentType: string]>([
    ["with parameters", { "content-type": 'Text/Plain; charset="X"' }, 'Text/Plain; charset="X"'],
    ["which defaults to bytes", {}, "application/octet-stream"],
    ["and are not parsed, even as JSON", { "content-type": "application/json" }, "application/json"],
  ])(
    "can be one field next to path and query, and keep their media type, %s",
    async (_what, headers, contentType) => {
      const request = await received("PUT /v1/{name} body: raw", "PUT /v1/a?tags=b", { headers, body });
      expect(request).toEqual({ name: "a", tags: ["b"], raw: { contentType, data: "AP97" } });
    },
  );

  it("allow no query if they are the whole request", async () => {
    const result = await received(whole, "POST /v1?contentType=a", { body });
    expect(result).toEqual(invalid("PARAMETER_UNKNOWN", "contentType"));
  });
});

describe("a body for a call that takes none is refused, because its content would be lost", () => {
  it.each(["GET /v1", "DELETE /v1", "POST /v1", "PURGE /v1"])("%s", async (rule) => {
    expect(await bound(rule, `${rule} {}`)).toEqual(invalid("BODY_UNEXPECTED"));
  });

  it("even if it begins with an empty chunk", async () => {
    const result = await received({ get: "/v1" }, "GET /v1", { body: chunked("", "", "{}") });
    expect(result).toEqual(invalid("BODY_UNEXPECTED"));
  });
});

it.each(["PATCH /v1/a", "PATCH /v1/a ", "PATCH /v1/a null"])(
  "a PATCH without changes is refused, because a mask would clear its fields: %s",
  async (request) => {
    expect(await bound("PATCH /v1/{name} body: nested", request)).toEqual(invalid("JSON_INVALID"));
  },
);

describe("conflicting values are refused", () => {
  const groups: Readonly<Record<string, readonly Refused[]>> = {
    "in path and body": [
      ["POST /v1/{name} body: *", 'POST /v1/a {"name":"b"}', "name"],
      ["POST /v1/{name} body: *", 'POST /v1/a {"name":""}', "name"],
      ["POST /v1/{int32_value} body: *", 'POST /v1/1 {"int32Value":0}', "int32Value"],
      ["POST /v1/{nested.id} body: *", 'POST /v1/a {"nested":{"id":"b"}}', "nested.id"],
      ["POST /v1/{nested.id} body: nested", 'POST /v1/a {"id":"b"}', "nested.id"],
    ],
    "in path and query": [
      ["GET /v1/{name}", "GET /v1/a?name=b", "name"],
      ["GET /v1/{name}", "GET /v1/a?name=", "name"],
      ["GET /v1/{int32_value}", "GET /v1/1?int32Value=0", "int32Value"],
      ["GET /v1/{int32_value}", "GET /v1/0?int32Value=1", "int32Value"],
      ["GET /v1/{color}", "GET /v1/0?color=RED", "color"],
      ["GET /v1/{name=**}", "GET /v1?name=a", "name"],
      ["GET /v1/{optional_count}", "GET /v1/0?optionalCount=1", "optionalCount"],
    ],
    "in query and body field": [
      ["POST /v1 body: name", 'POST /v1?name=a "b"', "name"],
      ["POST /v1 body: tags", 'POST /v1?tags=a ["a","b"]', "tags"],
      ["POST /v1 body: int32_value", "POST /v1?int32Value=1 0", "int32Value"],
    ],
    "in a query parameter inside the body field, whatever it contains": [
      ["POST /v1 body: nested", 'POST /v1?nested.id=a {"id":"a"}', "nested.id"],
      ["POST /v1 body: nested", "POST /v1?nested.child.id=a {}", "nested.child.id"],
      ["POST /v1 body: tags", "POST /v1?tags=a", "tags"],
    ],
    "in a oneof": [
      ["GET /v1", "GET /v1?text=&number=0", "number"],
      ["GET /v1", "GET /v1?part.id=b&text=a", "text"],
      ["GET /v1", "GET /v1?nested.first=b&nested.second=a", "nested.second"],
      ["GET /v1/{text}", "GET /v1/a?number=1", "number"],
      ["POST /v1/{text} body: *", 'POST /v1/a {"number":"0"}', "text"],
      ["POST /v1/{part.id} body: *", 'POST /v1/a {"text":"b"}', "part.id"],
      ["POST /v1 body: text", 'POST /v1?number=1 "a"', "number"],
    ],
  };
  for (const [what, rows] of Object.entries(groups)) {
    it.each(rows)(`${what}: %s: %s`, async (rule, request, field) => {
      expect(await bound(rule, request)).toEqual(invalid("FIELD_CONTRADICTION", field));
    });
  }

  it("in a oneof of the body", async () => {
    const result = await bound("POST /v1 body: *", 'POST /v1 {"text":"a","number":"1"}');
    expect(result).toMatchObject({ status: 400, code: "INVALID_ARGUMENT", fields: ["choice"] });
  });
});

describe("equal values for one field are accepted", () => {
  it.each<Accepted>([
    ["POST /v1/{name} body: *", 'POST /v1/a {"name":null}', { name: "a" }],
    ["POST /v1/{name} body: *", 'POST /v1/a%2Fb {"name":"a/b"}', { name: "a/b" }],
    ["POST /v1/{int32_value} body: *", 'POST /v1/0 {"int32Value":0}', {}],
    ["POST /v1/{double_value} body: *", 'POST /v1/NaN {"doubleValue":"NaN"}', { doubleValue: "NaN" }],
    ["POST /v1/{nested.id} body: nested", 'POST /v1/a {"id":"a"}', { nested: { id: "a" } }],
    ["GET /v1/{name}", "GET /v1/a?name=a", { name: "a" }],
    ["POST /v1 body: tags", 'POST /v1?tags=a&tags=b ["a","b"]', { tags: ["a", "b"] }],
  ])("%s: %s", async (rule, request, expected) => {
    expect(await bound(rule, request)).toEqual(expected);
  });
});

describe("a path variable has the type of its field", () => {
  it.each<[field: string, text: string, request: object]>([
    ["bool_value", "true", { boolValue: true }],
    ["int32_value", "-7", { int32Value: -7 }],
    ["color", "2", { color: "GREEN" }],
    ["bytes_value", "%2B%2F8%3D", { bytesValue: "+/8=" }],
    ["optional_count", "0", { optionalCount: 0 }],
    ["number", "0", { number: "0" }],
  ])("%s accepts %s", async (field, text, request) => {
    expect(await bound(`GET /v1/{${field}}`, `GET /v1/${text}`)).toEqual(request);
  });

  // query.test.ts has more values.
  it.each([
    ["int32_value", "2147483648", "int32Value"],
    ["nested.count", "x", "nested.count"],
  ])("%s rejects %s", async (field, text, named) => {
    expect(await bound(`GET /v1/{${field}}`, `GET /v1/${text}`)).toEqual(invalid("FIELD_INVALID", named));
  });
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
  it.each([
    ["GET /v1/messages/1", { name: "1" }],
    ["GET /v1/users/me/messages/1?nested.count=2", { name: "1", nested: { id: "me", count: "2" } }],
    ['POST /v1/messages/1:send {"id":"a"}', { name: "1", nested: { id: "a" } }],
    ['PURGE /v1/messages {"tags":["a"]}', { tags: ["a"] }],
  ])("%s calls the same RPC", async (request, expected) => {
    expect(await bound(rule, request)).toEqual(expected);
  });
});
