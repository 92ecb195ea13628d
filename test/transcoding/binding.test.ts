import { describe, expect, it } from "vitest";
import { HttpBodySchema } from "#gen/google/api/httpbody_pb.ts";
import { chunked } from "./client.ts";
import { invalid, type RuledRpc, received, type WrittenRule } from "./rules.ts";

/** Sends a request such as "POST /v1/a", or with a body 'POST /v1/a {"name":"b"}'. */
function bound(rule: WrittenRule, request: string) {
  const [, line = "", body] = /^(\S+ \S+)(?: (.*))?$/s.exec(request) ?? [];
  return received(rule, line, body === undefined ? {} : { body });
}

describe("path, query and body fill one request", () => {
  const rows: [what: string, rule: string, request: string, expected: object][] = [
    ["path alone", "GET /v1/{name}", "GET /v1/a", { name: "a" }],
    [
      "path and query",
      "GET /v1/{name}",
      "GET /v1/a?displayName=b&tags=c",
      { name: "a", displayName: "b", tags: ["c"] },
    ],
    [
      "several variables",
      "GET /v1/{nested.id}/x/{nested.child.id=y/*}",
      "GET /v1/a/x/y/b",
      { nested: { id: "a", child: { id: "y/b" } } },
    ],
    [
      "path and query in one message",
      "GET /v1/{nested.id}",
      "GET /v1/a?nested.count=2",
      { nested: { id: "a", count: "2" } },
    ],
    [
      "path and body",
      "POST /v1/{name} body: *",
      'POST /v1/a {"displayName":"b"}',
      { name: "a", displayName: "b" },
    ],
    [
      "path inside the body's message",
      "POST /v1/{nested.id} body: *",
      'POST /v1/a {"nested":{"count":2},"name":"b"}',
      { nested: { id: "a", count: "2" }, name: "b" },
    ],
    [
      "path inside a message that the body does not have",
      "POST /v1/{nested.child.id} body: *",
      "POST /v1/a {}",
      { nested: { child: { id: "a" } } },
    ],
    [
      "path, body field and query",
      "POST /v1/{name} body: nested",
      'POST /v1/a?displayName=b {"id":"c"}',
      { name: "a", displayName: "b", nested: { id: "c" } },
    ],
    [
      "path inside the body field",
      "PATCH /v1/{nested.id} body: nested",
      'PATCH /v1/a {"longName":"b"}',
      { nested: { id: "a", longName: "b" } },
    ],
    ["no optional body", "POST /v1/{name} body: *", "POST /v1/a", { name: "a" }],
    ["an empty optional body", "POST /v1/{name} body: *", "POST /v1/a ", { name: "a" }],
    ["no optional body field", "POST /v1/{name} body: nested", "POST /v1/a", { name: "a" }],
    ["an empty optional body field", "POST /v1/{name} body: nested", "POST /v1/a ", { name: "a" }],
    ["an empty body where none is allowed", "POST /v1/{name}", "POST /v1/a ", { name: "a" }],
    [
      "a DELETE body",
      "DELETE /v1/{name} body: *",
      'DELETE /v1/a {"int32Value":1}',
      { name: "a", int32Value: 1 },
    ],
    [
      "query without a body rule, for any method",
      "POST /v1/{name}",
      "POST /v1/a?int32Value=1",
      { name: "a", int32Value: 1 },
    ],
  ];
  for (const [what, rule, request, expected] of rows) {
    it(what, async () => {
      expect(await bound(rule, request)).toEqual(expected);
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
      expect(await bound(`POST /v1 body: ${field}`, `POST /v1 ${body}`)).toEqual(request);
    });
  }

  const breakouts = ['1},"name":"x"', '"a","name":"b"', '"a"}{"b":1', "1 2", "{", '"a" // b'];
  for (const body of breakouts) {
    it(`and contains nothing else of the message: ${body}`, async () => {
      expect(await bound("POST /v1 body: value", `POST /v1 ${body}`)).toEqual(invalid("JSON_INVALID"));
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

  it("can be one field next to path and query", async () => {
    const rule = { put: "/v1/{name}", body: "raw" };
    const request = await received(rule, "PUT /v1/a?displayName=b", { headers, body: bytes });
    expect(request).toEqual({ name: "a", displayName: "b", raw: { contentType: "image/png", data: "AP97" } });
  });

  it("keep the parameters of their media type", async () => {
    const contentType = 'Text/Plain; charset="ISO-8859-1"';
    const parts = { headers: { "content-type": contentType }, body: bytes };
    const request = await received("PUT /v1 body: raw", "PUT /v1", parts);
    expect(request).toEqual({ raw: { contentType, data: "AP97" } });
  });

  it("default to bytes without a media type", async () => {
    const request = await received({ put: "/v1", body: "raw" }, "PUT /v1", { body: bytes });
    expect(request).toEqual({ raw: { contentType: "application/octet-stream", data: "AP97" } });
  });

  it("are not parsed, even if they claim to be JSON", async () => {
    const parts = { headers: { "content-type": "application/json" }, body: "{" };
    const request = await received("PUT /v1 body: raw", "PUT /v1", parts);
    expect(request).toEqual({ raw: { contentType: "application/json", data: "ew==" } });
  });

  it("allow no query if they are the whole request", async () => {
    const rule = { post: "/v1", body: "*", input: HttpBodySchema };
    const result = await received(rule, "POST /v1?contentType=a", { body: bytes });
    expect(result).toEqual(invalid("PARAMETER_UNKNOWN", "contentType"));
  });
});

describe("a body for a call that takes none is refused, because its content would be lost", () => {
  for (const rule of ["GET /v1", "DELETE /v1", "POST /v1", "PURGE /v1"]) {
    it(rule, async () => {
      expect(await bound(rule, `${rule} {}`)).toEqual(invalid("BODY_UNEXPECTED"));
    });
  }

  it("even if it begins with an empty chunk", async () => {
    const result = await received({ get: "/v1" }, "GET /v1", { body: chunked("", "", "{}") });
    expect(result).toEqual(invalid("BODY_UNEXPECTED"));
  });
});

describe("conflicting values for one field are refused", () => {
  const everything = "POST /v1/{name} body: *";
  const count = "POST /v1/{int32_value} body: *";
  const inField = "POST /v1/{nested.id} body: nested";
  const rows: [what: string, rule: string, request: string, field: string][] = [
    ["path and body", everything, 'POST /v1/a {"name":"b"}', "name"],
    ["path and empty body field", everything, 'POST /v1/a {"name":""}', "name"],
    ["path and body, a number", count, 'POST /v1/1 {"int32Value":2}', "int32Value"],
    ["path and body, zero in the path", count, 'POST /v1/0 {"int32Value":2}', "int32Value"],
    ["path and body, zero in the body", count, 'POST /v1/1 {"int32Value":0}', "int32Value"],
    ["path and nested body", "POST /v1/{nested.id} body: *", 'POST /v1/a {"nested":{"id":"b"}}', "nested.id"],
    ["path and body field", inField, 'POST /v1/a {"id":"b"}', "nested.id"],
    ["path and query", "GET /v1/{name}", "GET /v1/a?name=b", "name"],
    ["path and query, empty", "GET /v1/{name}", "GET /v1/a?name=", "name"],
    ["path and query, zero in the query", "GET /v1/{int32_value}", "GET /v1/1?int32Value=0", "int32Value"],
    ["path and query, zero in the path", "GET /v1/{int32_value}", "GET /v1/0?int32Value=1", "int32Value"],
    [
      "path and query, false in the path",
      "GET /v1/{bool_value}",
      "GET /v1/false?boolValue=true",
      "boolValue",
    ],
    ["path and query, zero enum in the path", "GET /v1/{color}", "GET /v1/0?color=RED", "color"],
    ["path and query, no segments", "GET /v1/{name=**}", "GET /v1?name=a", "name"],
    ["path and query, nested", "GET /v1/{nested.id}", "GET /v1/a?nested.id=b", "nested.id"],
    ["path and query, by proto name", "GET /v1/{display_name}", "GET /v1/a?display_name=b", "displayName"],
    [
      "path and query, with presence",
      "GET /v1/{optional_count}",
      "GET /v1/0?optionalCount=1",
      "optionalCount",
    ],
    ["query and body field", "POST /v1 body: name", 'POST /v1?name=a "b"', "name"],
    ["query and repeated body field", "POST /v1 body: tags", 'POST /v1?tags=a ["a","b"]', "tags"],
    ["query and nested body field", "POST /v1 body: nested", 'POST /v1?nested.id=a {"id":"b"}', "nested.id"],
    ["query and zero body field", "POST /v1 body: int32_value", "POST /v1?int32Value=1 0", "int32Value"],
    ["zero query and body field", "POST /v1 body: int32_value", "POST /v1?int32Value=0 1", "int32Value"],
  ];
  for (const [what, rule, request, field] of rows) {
    it(`${what}: ${request}`, async () => {
      expect(await bound(rule, request)).toEqual(invalid("FIELD_CONTRADICTION", field));
    });
  }
});

describe("a query parameter inside the body field is refused", () => {
  const rows: [what: string, request: string, field: string][] = [
    ["a different field of the body", 'POST /v1?nested.count=9 {"id":"a"}', "nested.count"],
    ["the same value as in the body", 'POST /v1?nested.id=a {"id":"a"}', "nested.id"],
    ["a field of a message in the body", "POST /v1?nested.child.id=a {}", "nested.child.id"],
    ["without a body", "POST /v1?nested.id=a", "nested.id"],
    ["by proto names", "POST /v1?nested.long_name=a {}", "nested.longName"],
  ];
  for (const [what, request, field] of rows) {
    it(`${what}: ${request}`, async () => {
      expect(await bound("POST /v1 body: nested", request)).toEqual(invalid("FIELD_CONTRADICTION", field));
    });
  }

  it("as a whole, if the body omits it", async () => {
    const result = await bound("POST /v1 body: tags", "POST /v1?tags=a");
    expect(result).toEqual(invalid("FIELD_CONTRADICTION", "tags"));
  });
});

describe("equal values for one field are accepted", () => {
  const rows: [what: string, rule: string, request: string, expected: object][] = [
    ["path and body", "POST /v1/{name} body: *", 'POST /v1/a {"name":"a"}', { name: "a" }],
    ["path and null in the body", "POST /v1/{name} body: *", 'POST /v1/a {"name":null}', { name: "a" }],
    ["path and body, decoded", "POST /v1/{name} body: *", 'POST /v1/a%2Fb {"name":"a/b"}', { name: "a/b" }],
    ["path and body, zero", "POST /v1/{int32_value} body: *", 'POST /v1/0 {"int32Value":0}', {}],
    [
      "path and body, different spellings",
      "POST /v1/{int64_value} body: *",
      'POST /v1/007 {"int64Value":"7"}',
      { int64Value: "7" },
    ],
    [
      "path and body, NaN",
      "POST /v1/{double_value} body: *",
      'POST /v1/NaN {"doubleValue":"NaN"}',
      { doubleValue: "NaN" },
    ],
    [
      "path and body, an enum by number",
      "POST /v1/{color} body: *",
      'POST /v1/1 {"color":"RED"}',
      { color: "RED" },
    ],
    [
      "path and body field",
      "POST /v1/{nested.id} body: nested",
      'POST /v1/a {"id":"a"}',
      { nested: { id: "a" } },
    ],
    ["path and query", "GET /v1/{name}", "GET /v1/a?name=a", { name: "a" }],
    ["query and body field", "POST /v1 body: tags", 'POST /v1?tags=a&tags=b ["a","b"]', { tags: ["a", "b"] }],
    ["path in a oneof and body", "POST /v1/{text} body: *", 'POST /v1/a {"text":"a"}', { text: "a" }],
  ];
  for (const [what, rule, request, expected] of rows) {
    it(`${what}: ${request}`, async () => {
      expect(await bound(rule, request)).toEqual(expected);
    });
  }
});

describe("setting a oneof twice is refused", () => {
  const rows: [what: string, rule: string, request: string, field: string][] = [
    ["in the query", "GET /v1", "GET /v1?text=a&number=1", "number"],
    ["in the query, empty", "GET /v1", "GET /v1?text=&number=0", "number"],
    ["in the query, a message last", "GET /v1", "GET /v1?text=a&part.id=b", "part.id"],
    ["in the query, a message first", "GET /v1", "GET /v1?part.id=b&text=a", "text"],
    ["in the query, a wrapper", "GET /v1", "GET /v1?wrapped=b&text=a", "text"],
    ["in the query, nested", "GET /v1", "GET /v1?nested.first=b&nested.second=a", "nested.second"],
    ["in path and query", "GET /v1/{text}", "GET /v1/a?number=1", "number"],
    ["in path and body", "POST /v1/{text} body: *", 'POST /v1/a {"number":"1"}', "text"],
    ["in path and body, zero", "POST /v1/{text} body: *", 'POST /v1/a {"number":"0"}', "text"],
    ["in path and body, a message", "POST /v1/{part.id} body: *", 'POST /v1/a {"text":"b"}', "part.id"],
    ["in query and body field", "POST /v1 body: text", 'POST /v1?number=1 "a"', "number"],
  ];
  for (const [what, rule, request, field] of rows) {
    it(`${what}: ${request}`, async () => {
      expect(await bound(rule, request)).toEqual(invalid("FIELD_CONTRADICTION", field));
    });
  }

  it("in the body", async () => {
    const result = await bound("POST /v1 body: *", 'POST /v1 {"text":"a","number":"1"}');
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
    it(`${field} accepts ${text}`, async () => {
      expect(await bound(`GET /v1/{${field}}`, `GET /v1/${text}`)).toEqual(request);
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
    it(`${field} rejects ${text}`, async () => {
      const result = await bound(`GET /v1/{${field}}`, `GET /v1/${text}`);
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
  const rows: [request: string, expected: object][] = [
    ["GET /v1/messages/1", { name: "1" }],
    ["GET /v1/users/me/messages/1", { name: "1", nested: { id: "me" } }],
    ["GET /v1/users/me/messages/1?nested.count=2", { name: "1", nested: { id: "me", count: "2" } }],
    ['POST /v1/messages/1:send {"id":"a"}', { name: "1", nested: { id: "a" } }],
    ['PURGE /v1/messages {"tags":["a"]}', { tags: ["a"] }],
  ];
  for (const [request, expected] of rows) {
    it(`${request} calls the same RPC`, async () => {
      expect(await bound(rule, request)).toEqual(expected);
    });
  }
});
