import { describe, expect, it } from "vitest";
import { refusalOf, send } from "./client.ts";
import { invalid, received, serveRules } from "./rules.ts";

const rule = { post: "/v1", body: "*" };
const post = (body: string | Uint8Array) => received(rule, "POST /v1", { body });
/** The message of a refusal. */
const messageOf = async (body: string): Promise<string> =>
  JSON.parse((await send(serveRules([rule]).transcoder, "POST /v1", { body })).text).message;

describe("a JSON body sets fields", () => {
  it.each<[body: string, request: object]>([
    ["{}", {}],
    [" \r\n\t{} ", {}],
    ['\ufeff{"name":"a"}', { name: "a" }],
    ['{"display_name":"a"}', { displayName: "a" }],
    ['{"renamed":"a"}', { "other-name": "a" }],
    ['{"n\\u0061me":"\\ud83d\\udd11"}', { name: "🔑" }],
    ['{"name":null,"nested":null,"tags":null,"labels":null,"color":null,"text":null}', {}],
    ['{"name":"","int32Value":0,"boolValue":false,"color":"COLOR_UNSPECIFIED","tags":[],"labels":{}}', {}],
    [
      '{"int32Value":1.0,"uint32Value":1e2,"int64Value":"5"}',
      { int32Value: 1, uint32Value: 100, int64Value: "5" },
    ],
    ['{"int64Value":-9007199254740991}', { int64Value: "-9007199254740991" }],
    ['{"totals":{"a":"9007199254740993"}}', { totals: { a: "9007199254740993" } }],
    ['{"int64Wrapper":"9007199254740993"}', { int64Wrapper: "9007199254740993" }],
    [
      '{"doubleValue":9007199254740993,"doubles":[1e300],"doubleWrapper":123456789012345678}',
      { doubleValue: 9007199254740992, doubles: [1e300], doubleWrapper: 123456789012345680 },
    ],
    [
      '{"value":9007199254740993,"struct":{"a":9007199254740993},"list":[9007199254740993]}',
      { value: 9007199254740992, struct: { a: 9007199254740992 }, list: [9007199254740992] },
    ],
    ['{"bytesValue":"-_8"}', { bytesValue: "+/8=" }],
    ['{"labels":{"constructor":"a","":"b"}}', { labels: { constructor: "a", "": "b" } }],
  ])("%j", async (body, request) => {
    expect(await post(body)).toEqual(request);
  });

  it("nested ninety messages deep", async () => {
    const levels = 90;
    const result = await post(`{"nested":${'{"child":'.repeat(levels)}{}${"}".repeat(levels)}}`);
    expect(result).toHaveProperty(`nested${".child".repeat(levels)}`, {});
  });
});

describe("an unknown field is refused and named", () => {
  const names = ["bogus", "Name", "", "__proto__", "constructor", "$typeName", "choice", "nested.id"];
  it.each(names)('{"%s":{}}', async (name) => {
    expect(await post(`{"name":"a","${name}":{}}`)).toEqual(invalid("FIELD_INVALID", name));
  });

  it.each([
    ['{"bogus":null}', "bogus"],
    ['{"nested":{"child":{"bogus":1}}}', "nested.child.bogus"],
    ['{"nested":{"long name":1}}', "nested.long name"],
    ['{"nesteds":[{},{"bogus":1}]}', "nesteds[1].bogus"],
  ])("%s", async (body, field) => {
    expect(await post(body)).toEqual(invalid("FIELD_INVALID", field));
  });

  it("in a body field, with a path from the root of the request", async () => {
    const result = await received({ post: "/v1", body: "nested" }, "POST /v1", { body: '{"bogus":1}' });
    expect(result).toEqual(invalid("FIELD_INVALID", "nested.bogus"));
  });
});

it("all unknown fields of an object are refused and named, at most ten", async () => {
  expect(await post('{"bogus":1,"name":"a","foo":{}}')).toEqual(invalid("FIELD_INVALID", "bogus", "foo"));
  expect(await post('{"nested":{"a":1,"b":1}}')).toEqual(invalid("FIELD_INVALID", "nested.a", "nested.b"));
  const names = Array.from({ length: 11 }, (_, index) => `bogus${index}`);
  const body = JSON.stringify(Object.fromEntries(names.map((name) => [name, 1])));
  expect(await post(body)).toEqual(invalid("FIELD_INVALID", ...names.slice(0, 10)));
});

it.each([
  ['{"bogus":1,"foo":1}', "bogus: the field does not exist; foo: the field does not exist"],
  ['{"displayNAME":"a"}', 'displayNAME: the field does not exist; did you mean "displayName"?'],
  ['{"nested":{"cuont":1}}', 'nested.cuont: the field does not exist; did you mean "count"?'],
])("the message says which fields do not exist: %s", async (body, message) => {
  expect(await messageOf(body)).toBe(message);
});

describe("a duplicate field is refused and named", () => {
  it.each([
    ['{"name":"a","name":"a"}', "name"],
    ['{"n\\u0061me":"a","name":"a"}', "name"],
    ['{"displayName":null,"display_name":"b"}', "displayName"],
    ['{"nested":{"id":"a","id":"b"}}', "id"],
    ['{"labels":{"a":"x","a":"y"}}', "a"],
    ['{"struct":{"a":1,"a":2}}', "a"],
  ])("%s", async (body, field) => {
    expect(await post(body)).toEqual(invalid("FIELD_INVALID", field));
  });
});

describe("a value of the wrong type is refused and its field named", () => {
  const refused: Readonly<Record<string, readonly string[]>> = {
    name: ["1", "true", '["a"]', "{}", '"\\ud800"'],
    boolValue: ['"true"', "1"],
    int32Value: ["1.5", '"a"', '""', '" 1"', '"0x10"', '"0b1"', "true", "2147483648"],
    uint32Value: ["-1"],
    int64Value: ["1.5", '"9223372036854775808"', '"0x10"', '""'],
    uint64Value: ['"-1"', '"18446744073709551616"'],
    floatValue: ["1e39"],
    doubleValue: ["1e400", '"x"', '"0x10"', '""'],
    bytesValue: ['"A"', '"A*=="', '"AQI=AQI="', '"AQ=I"', '"===="', '"AQ I="', "[1,2]"],
    color: ['"BLUE"', '"red"', "1.5", "99999999999", "true"],
    tags: ['"a"', "{}", "[null]", '[["a"]]'],
    nesteds: ["[null]", '["a"]'],
    labels: ["[]", '{"a":null}', '{"a":1}'],
    nestedByNumber: ['{"x":{}}', '{"1":"x"}'],
    nested: ['"a"', "[]", "true"],
    timestamp: ['"yesterday"', "0", '{"seconds":1}', '"2026-02-30T00:00:00Z"', '"2026-01-01T24:00:00Z"'],
    duration: ['"5"', '"5s!"', '"1.1234567890s"'],
    mask: ['"display_name"', '["a"]'],
    struct: ["[]"],
    any: ['"x"', '{"@type":"type.googleapis.com/no.Such"}', '{"id":"a"}'],
    stringWrapper: ["1"],
  };
  for (const [field, values] of Object.entries(refused)) {
    it.each(values)(`{"${field}":%s}`, async (value) => {
      // The error may name an element of a list or map, or only the field.
      expect(await namedField(`{"${field}":${value}}`)).toBe(field);
    });
  }

  it.each([
    ['{"nested":{"count":"x"}}', "nested.count"],
    ['{"nested":{"child":"x"}}', "nested.child"],
    ['{"nesteds":[{"count":"x"}]}', "nesteds[0].count"],
    ['{"any":{"@type":"type.googleapis.com/testing.Nested","count":"x"}}', "any.count"],
  ])("%s", async (body, field) => {
    expect(await namedField(body)).toBe(field);
  });

  async function namedField(body: string): Promise<string | undefined> {
    const refusal = refusalOf(await send(serveRules([rule]).transcoder, "POST /v1", { body }));
    expect(refusal).toMatchObject({ status: 400, code: "INVALID_ARGUMENT" });
    expect(refusal.fields).toHaveLength(1);
    return refusal.fields[0]?.replace(/\[[^\]]*\]$/, "");
  }
});

describe("a value of the wrong type is refused in JSON terms", () => {
  it.each([
    ['{"bytesValue":5}', "bytesValue: expected a base64 string, got 5"],
    ['{"bytesValue":[1,2]}', "bytesValue: expected a base64 string, got a list"],
    ['{"blobs":"AAAA"}', 'blobs: expected a list, got "AAAA"'],
    ['{"blobs":["AAAA",5]}', "blobs[1]: expected a base64 string, got 5"],
    ['{"colors":"RED"}', 'colors: expected a list, got "RED"'],
    ['{"labels":["a"]}', "labels: expected object, got a list"],
    ['{"bytesValue":"AA\\r\\nAA"}', "bytesValue: invalid base64: line breaks are not allowed"],
    ['{"bytesValue":"A*=="}', "bytesValue: invalid base64: expected the standard or the URL-safe alphabet"],
    ['{"int64Value":1.5}', "int64Value: must be a whole number, got 1.5"],
    ['{"longs":[1.5]}', "longs[0]: must be a whole number, got 1.5"],
    ['{"totals":{"a":1.5}}', 'totals["a"]: must be a whole number, got 1.5'],
    ['{"int32Value":1.5}', "int32Value: must be a whole number, got 1.5"],
    ['{"int32Value":2147483648}', "int32Value: expected integer (int32): 2147483648 out of range"],
    ['{"int32Value":9223372036854775807}', "int32Value: 9223372036854775807 is out of range"],
    ['{"uint64Value":"-1"}', "uint64Value: expected integer (uint64): -1 out of range"],
    ['{"doubleValue":"x"}', 'doubleValue: expected number (float64), got "x"'],
    ...["int64Value", "uint64Value", "int64Wrapper"].map((field) => [
      `{"${field}":9223372036854775807}`,
      `${field}: 9223372036854775807 is beyond 2^53 - 1 and would lose digits as a JSON number; write it as a string`,
    ]),
  ])("%s", async (body, message) => {
    expect(await messageOf(body)).toBe(message);
  });
});

describe("an integer that a JSON number cannot hold is refused and its field named", () => {
  it.each([
    "9007199254740992",
    "-9007199254740993",
    "9007199254740993.0",
    "9.007199254740993e15",
    "90071992547409930E-1",
    "1E+18",
  ])('{"int64_value":%s}', async (number) => {
    expect(await post(`{"int64_value":${number}}`)).toEqual(invalid("FIELD_INVALID", "int64Value"));
  });

  it.each(["sint64Value", "sfixed64Value", "uint64Value", "fixed64Value", "int64Wrapper", "number"])(
    '{"%s":9007199254740993}',
    async (field) => {
      expect(await post(`{"${field}":9007199254740993}`)).toEqual(invalid("FIELD_INVALID", field));
    },
  );

  it.each([
    ['{"longs":[1,9007199254740993]}', "longs[1]"],
    ['{"totals":{"a":9007199254740993}}', 'totals["a"]'],
    ['{"nested":{"child":{"count":9007199254740993}}}', "nested.child.count"],
    ['{"nesteds":[{},{"count":9007199254740993}]}', "nesteds[1].count"],
    ['{"doubleValue":9007199254740993,"int64Value":9007199254740993}', "int64Value"],
    ['{"any":{"@type":"type.googleapis.com/testing.Nested","count":9007199254740993}}', "any.count"],
    ['{"any":{"@type":"t/google.protobuf.Int64Value","value":9007199254740993}}', "any.value"],
  ])("%s", async (body, field) => {
    expect(await post(body)).toEqual(invalid("FIELD_INVALID", field));
  });

  it("as a body field", async () => {
    const rule = { post: "/v1", body: "int64_value" };
    const result = await received(rule, "POST /v1", { body: "9007199254740993" });
    expect(result).toEqual(invalid("FIELD_INVALID", "int64Value"));
  });
});

describe("a body that is not the JSON of a message is refused", () => {
  const refused: Readonly<Record<string, readonly string[]>> = {
    empty: [" ", "\u0000"],
    "a value of another kind": ["null", "true", "1", '"a"', "[]", "[{}]"],
    cut: ["{", "}", '{"name":"a"'],
    "followed by something": ['{"name":"a",}', '{"name":"a"} {}', '{"name":"a"}x'],
    "JavaScript or JSON5": ["{name:'a'}", "// a\n{}", "undefined", '{"name":"a\nb"}'],
    "an invalid number": ["01", "+1", "0x1", "NaN", ".5"].map((number) => `{"doubleValue":${number}}`),
    "another format": ["name=a", "<name>a</name>"],
  };
  for (const [what, bodies] of Object.entries(refused)) {
    it.each(bodies)(`${what}: %j`, async (body) => {
      expect(await post(body)).toEqual(invalid("JSON_INVALID"));
    });
  }

  it.each([
    ["a lone byte", [0xff]],
    ["an overlong slash", [0xc0, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a cut character", [0xc3]],
  ])("bytes that are not UTF-8: %s", async (_what, bytes) => {
    const body = Buffer.concat([Buffer.from('{"name":"'), Buffer.from(bytes), Buffer.from('"}')]);
    expect(await post(body)).toEqual(invalid("JSON_INVALID"));
  });

  it("UTF-16", async () => {
    expect(await post(Buffer.from('{"name":"a"}', "utf16le"))).toEqual(invalid("JSON_INVALID"));
  });

  const nestings: [what: string, prefix: string, open: string, close: string, end: string][] = [
    ["messages", '{"nested":', '{"child":', "}", "}"],
    ["lists in a Value", '{"value":', "[", "]", "}"],
    ["messages around an unsafe integer", '{"nested":', '{"count":9007199254740993,"child":', "}", "}"],
    ["arrays", "", "[", "]", ""],
  ];
  for (const [what, prefix, open, close, end] of nestings) {
    it.each([200, 8000, 100_000])(`%i levels of ${what}`, async (depth) => {
      const body = `${prefix}${open.repeat(depth)}{}${close.repeat(depth)}${end}`;
      expect(await post(body)).toMatchObject({ status: 400, code: "INVALID_ARGUMENT" });
    });
  }

  it.each([
    ["[]", "an array"],
    ["null", "null"],
  ])("%s, with its actual type", async (body, kind) => {
    expect(await messageOf(body)).toBe(`the body is ${kind}; send a JSON object, such as {}`);
  });

  it("expects a time as in a query", async () => {
    expect(await messageOf('{"timestamp":"tomorrow"}')).toBe(
      'timestamp: expected a time such as 2026-01-31T12:00:00Z, got "tomorrow"',
    );
  });
});
