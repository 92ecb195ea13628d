import { describe, expect, it } from "vitest";
import { refusalOf, send } from "./client.ts";
import { invalid, received, serveRules } from "./rules.ts";

const post = (body: string | Uint8Array) => received({ post: "/v1", body: "*" }, "POST /v1", { body });

describe("a JSON body sets fields", () => {
  const rows: [body: string, request: object][] = [
    ["{}", {}],
    [" \r\n\t{} ", {}],
    ['{"displayName":"a"}', { displayName: "a" }],
    ['{"display_name":"a"}', { displayName: "a" }],
    ['{"other-name":"a"}', { "other-name": "a" }],
    ['{"renamed":"a"}', { "other-name": "a" }],
    ['{"n\\u0061me":"\\ud83d\\udd11"}', { name: "🔑" }],
    ['{"name":null,"nested":null,"tags":null,"labels":null,"color":null,"text":null}', {}],
    ['{"name":"","int32Value":0,"boolValue":false,"color":"COLOR_UNSPECIFIED","tags":[],"labels":{}}', {}],
    [
      '{"int32Value":1.0,"uint32Value":1e2,"int64Value":"5","int32Wrapper":"6"}',
      { int32Value: 1, uint32Value: 100, int64Value: "5", int32Wrapper: 6 },
    ],
    ['{"int64Value":9007199254740991}', { int64Value: "9007199254740991" }],
    ['{"int64Value":-9007199254740991}', { int64Value: "-9007199254740991" }],
    ['{"int64Value":"9007199254740993"}', { int64Value: "9007199254740993" }],
    ['{"uint64Value":"18446744073709551615"}', { uint64Value: "18446744073709551615" }],
    ['{"longs":["9007199254740993",1]}', { longs: ["9007199254740993", "1"] }],
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
    [
      '{"name":"9007199254740993 is text","int64Value":1}',
      { name: "9007199254740993 is text", int64Value: "1" },
    ],
    ['{"color":77}', { color: 77 }],
    ['{"bytesValue":"-_8"}', { bytesValue: "+/8=" }],
    ['{"labels":{"constructor":"a","":"b"}}', { labels: { constructor: "a", "": "b" } }],
  ];
  for (const [body, request] of rows) {
    it(JSON.stringify(body), async () => {
      expect(await post(body)).toEqual(request);
    });
  }

  it("after a byte order mark", async () => {
    expect(await post('\ufeff{"name":"a"}')).toEqual({ name: "a" });
  });

  it("nested ninety messages deep", async () => {
    const levels = 90;
    const result = await post(`{"nested":${'{"child":'.repeat(levels)}{}${"}".repeat(levels)}}`);
    expect(result).toHaveProperty(`nested${".child".repeat(levels)}`, {});
  });
});

describe("an unknown field is refused and named", () => {
  const rows: [body: string, field: string][] = [
    ['{"bogus":1}', "bogus"],
    ['{"name":"a","bogus":null}', "bogus"],
    ['{"Name":"a"}', "Name"],
    ['{"DisplayName":"a"}', "DisplayName"],
    ['{"":1}', ""],
    ['{"__proto__":{}}', "__proto__"],
    ['{"constructor":{}}', "constructor"],
    ['{"toString":1}', "toString"],
    ['{"$typeName":"x"}', "$typeName"],
    ['{"choice":"x"}', "choice"],
    ['{"nested.id":"x"}', "nested.id"],
    ['{"nested":{"bogus":1}}', "nested.bogus"],
    ['{"nested":{"child":{"bogus":1}}}', "nested.child.bogus"],
    ['{"nested":{"long name":1}}', "nested.long name"],
    ['{"part":{"bogus":1}}', "part.bogus"],
    ['{"nesteds":[{},{"bogus":1}]}', "nesteds[1].bogus"],
    ['{"empty":{"bogus":1}}', "empty.bogus"],
    ['{"raw":{"bogus":1}}', "raw.bogus"],
  ];
  for (const [body, field] of rows) {
    it(body, async () => {
      expect(await post(body)).toEqual(invalid("FIELD_INVALID", field));
    });
  }

  it("in a body field, with a path from the root of the request", async () => {
    const result = await received({ post: "/v1", body: "nested" }, "POST /v1", { body: '{"bogus":1}' });
    expect(result).toEqual(invalid("FIELD_INVALID", "nested.bogus"));
  });
});

describe("a duplicate field is refused and named", () => {
  const rows: [body: string, field: string][] = [
    ['{"name":"a","name":"b"}', "name"],
    ['{"name":"a","name":"a"}', "name"],
    ['{"name":null,"name":"a"}', "name"],
    ['{"n\\u0061me":"a","name":"a"}', "name"],
    ['{"displayName":"a","display_name":"b"}', "displayName"],
    ['{"displayName":null,"display_name":"b"}', "displayName"],
    ['{"nested":{"id":"a","id":"b"}}', "nested.id"],
    ['{"nested":{"longName":"a","long_name":"b"}}', "nested.longName"],
    ['{"labels":{"a":"x","a":"y"}}', "labels.a"],
    ['{"struct":{"a":1,"a":2}}', "struct.a"],
  ];
  for (const [body, field] of rows) {
    it(`${body} is refused`, async () => {
      expect(await post(body)).toMatchObject({ status: 400, code: "INVALID_ARGUMENT" });
    });
    it(`${body} names ${field.split(".")[0]}`, async () => {
      const { fields } = refusalOf(
        await send(serveRules([{ post: "/v1", body: "*" }]).transcoder, "POST /v1", { body }),
      );
      expect(fields.join()).toContain(field.split(".").at(-1));
    });
  }
});

describe("a value of the wrong type is refused and its field named", () => {
  const rows: [body: string, field: string][] = [
    ['{"name":1}', "name"],
    ['{"name":true}', "name"],
    ['{"name":["a"]}', "name"],
    ['{"name":{}}', "name"],
    ['{"name":"\\ud800"}', "name"],
    ['{"boolValue":"true"}', "boolValue"],
    ['{"boolValue":1}', "boolValue"],
    ['{"int32Value":1.5}', "int32Value"],
    ['{"int32Value":"a"}', "int32Value"],
    ['{"int32Value":""}', "int32Value"],
    ['{"int32Value":" 1"}', "int32Value"],
    ['{"int32Value":"0x10"}', "int32Value"],
    ['{"int32Value":"0b1"}', "int32Value"],
    ['{"int32Value":true}', "int32Value"],
    ['{"int32Value":2147483648}', "int32Value"],
    ['{"sint32Value":-2147483649}', "sint32Value"],
    ['{"uint32Value":-1}', "uint32Value"],
    ['{"fixed32Value":4294967296}', "fixed32Value"],
    ['{"int64Value":1.5}', "int64Value"],
    ['{"int64Value":"9223372036854775808"}', "int64Value"],
    ['{"int64Value":"0x10"}', "int64Value"],
    ['{"int64Value":""}', "int64Value"],
    ['{"uint64Value":"-1"}', "uint64Value"],
    ['{"uint64Value":"18446744073709551616"}', "uint64Value"],
    ['{"floatValue":1e39}', "floatValue"],
    ['{"doubleValue":1e400}', "doubleValue"],
    ['{"doubleValue":"x"}', "doubleValue"],
    ['{"doubleValue":"0x10"}', "doubleValue"],
    ['{"doubleValue":""}', "doubleValue"],
    ['{"bytesValue":"A"}', "bytesValue"],
    ['{"bytesValue":"A*=="}', "bytesValue"],
    ['{"bytesValue":"AQI=AQI="}', "bytesValue"],
    ['{"bytesValue":"AQ=I"}', "bytesValue"],
    ['{"bytesValue":"===="}', "bytesValue"],
    ['{"bytesValue":"AQ I="}', "bytesValue"],
    ['{"bytesValue":[1,2]}', "bytesValue"],
    ['{"color":"BLUE"}', "color"],
    ['{"color":"red"}', "color"],
    ['{"color":1.5}', "color"],
    ['{"color":99999999999}', "color"],
    ['{"color":true}', "color"],
    ['{"tags":"a"}', "tags"],
    ['{"tags":{}}', "tags"],
    ['{"tags":[null]}', "tags"],
    ['{"tags":[["a"]]}', "tags"],
    ['{"numbers":[1,"x"]}', "numbers"],
    ['{"nesteds":[null]}', "nesteds"],
    ['{"nesteds":["a"]}', "nesteds"],
    ['{"labels":[]}', "labels"],
    ['{"labels":{"a":null}}', "labels"],
    ['{"labels":{"a":1}}', "labels"],
    ['{"nestedByNumber":{"x":{}}}', "nestedByNumber"],
    ['{"nestedByNumber":{"1":"x"}}', "nestedByNumber"],
    ['{"nested":"a"}', "nested"],
    ['{"nested":[]}', "nested"],
    ['{"nested":true}', "nested"],
    ['{"nested":{"count":"x"}}', "nested.count"],
    ['{"nested":{"child":{"id":1}}}', "nested.child.id"],
    ['{"nested":{"child":"x"}}', "nested.child"],
    ['{"nesteds":[{"count":"x"}]}', "nesteds[0].count"],
    ['{"part":"x"}', "part"],
    ['{"timestamp":"yesterday"}', "timestamp"],
    ['{"timestamp":0}', "timestamp"],
    ['{"timestamp":{"seconds":1}}', "timestamp"],
    ['{"timestamp":"2026-02-30T00:00:00Z"}', "timestamp"],
    ['{"duration":"5"}', "duration"],
    ['{"duration":"5s!"}', "duration"],
    ['{"duration":"1.1234567890s"}', "duration"],
    ['{"mask":"display_name"}', "mask"],
    ['{"mask":["a"]}', "mask"],
    ['{"struct":[]}', "struct"],
    ['{"list":{}}', "list"],
    ['{"any":"x"}', "any"],
    ['{"any":{"@type":"type.googleapis.com/no.Such"}}', "any"],
    ['{"any":{"id":"a"}}', "any"],
    ['{"any":{"@type":"type.googleapis.com/testing.Nested","count":"x"}}', "any.count"],
    ['{"boolWrapper":"true"}', "boolWrapper"],
    ['{"int32Wrapper":"x"}', "int32Wrapper"],
    ['{"stringWrapper":1}', "stringWrapper"],
    ['{"times":["now"]}', "times"],
  ];
  for (const [body, field] of rows) {
    it(`${body} is refused`, async () => {
      expect(await post(body)).toMatchObject({ status: 400, code: "INVALID_ARGUMENT" });
    });
    it(`${body} names ${field}`, async () => {
      const { transcoder } = serveRules([{ post: "/v1", body: "*" }]);
      const { fields } = refusalOf(await send(transcoder, "POST /v1", { body }));
      // The error may name an element of a list or map, or only the field.
      expect(fields.map((named) => named.replace(/\[[^\]]*\]$/, ""))).toEqual([field]);
    });
  }
});

describe("a value of the wrong type is refused in JSON terms", () => {
  const rows: [body: string, message: string][] = [
    ['{"bytesValue":5}', "bytesValue: expected a base64 string, got 5"],
    ['{"bytesValue":[1,2]}', "bytesValue: expected a base64 string, got a list"],
    ['{"bytesValue":{}}', "bytesValue: expected a base64 string, got an object"],
    ['{"blobs":"x"}', 'blobs: expected a list, got "x"'],
    ['{"blobs":"AAAA"}', 'blobs: expected a list, got "AAAA"'],
    ['{"blobs":5}', "blobs: expected a list, got 5"],
    ['{"blobs":{"a":1}}', "blobs: expected a list, got an object"],
    ['{"blobs":["AAAA",5]}', "blobs[1]: expected a base64 string, got 5"],
    ['{"nesteds":{"count":"x"}}', "nesteds: expected a list, got an object"],
    ['{"colors":"RED"}', 'colors: expected a list, got "RED"'],
    ['{"labels":["a"]}', "labels: expected object, got a list"],
  ];
  it.each(rows)("%s", async (body, message) => {
    const { transcoder } = serveRules([{ post: "/v1", body: "*" }]);
    const { text } = await send(transcoder, "POST /v1", { body });
    expect(JSON.parse(text).message).toBe(message);
  });
});

describe("an integer that a JSON number cannot hold is refused and its field named", () => {
  const rows: [body: string, field: string][] = [
    ['{"int64Value":9007199254740992}', "int64Value"],
    ['{"int64Value":9007199254740993}', "int64Value"],
    ['{"int64Value":-9007199254740993}', "int64Value"],
    ['{"int64_value":9007199254740993}', "int64Value"],
    ['{"int64Value": 9007199254740993 }', "int64Value"],
    ['{"int64Value":9007199254740993.0}', "int64Value"],
    ['{"int64Value":9.007199254740993e15}', "int64Value"],
    ['{"int64Value":9007199254740993e0}', "int64Value"],
    ['{"int64Value":90071992547409930E-1}', "int64Value"],
    ['{"int64Value":1e18}', "int64Value"],
    ['{"int64Value":1E+18}', "int64Value"],
    ['{"sint64Value":9007199254740993}', "sint64Value"],
    ['{"sfixed64Value":9007199254740993}', "sfixed64Value"],
    ['{"uint64Value":9007199254740993}', "uint64Value"],
    ['{"uint64Value":18446744073709551615}', "uint64Value"],
    ['{"fixed64Value":9007199254740993}', "fixed64Value"],
    ['{"longs":[1,9007199254740993]}', "longs[1]"],
    ['{"totals":{"a":9007199254740993}}', 'totals["a"]'],
    ['{"nested":{"count":9007199254740993}}', "nested.count"],
    ['{"nested":{"child":{"count":9007199254740993}}}', "nested.child.count"],
    ['{"nesteds":[{},{"count":9007199254740993}]}', "nesteds[1].count"],
    ['{"nestedByNumber":{"1":{"count":9007199254740993}}}', 'nestedByNumber["1"].count'],
    ['{"int64Wrapper":9007199254740993}', "int64Wrapper"],
    ['{"uint64Wrapper":9007199254740993}', "uint64Wrapper"],
    ['{"number":9007199254740993}', "number"],
    ['{"part":{"count":9007199254740993}}', "part.count"],
    ['{"doubleValue":9007199254740993,"int64Value":9007199254740993}', "int64Value"],
    ['{"any":{"@type":"type.googleapis.com/testing.Nested","count":9007199254740993}}', "any.count"],
    [
      '{"any":{"@type":"type.googleapis.com/google.protobuf.Int64Value","value":9007199254740993}}',
      "any.value",
    ],
  ];
  for (const [body, field] of rows) {
    it(body, async () => {
      expect(await post(body)).toEqual(invalid("FIELD_INVALID", field));
    });
  }

  it("as a body field", async () => {
    const rule = { post: "/v1", body: "int64_value" };
    const result = await received(rule, "POST /v1", { body: "9007199254740993" });
    expect(result).toEqual(invalid("FIELD_INVALID", "int64Value"));
  });
});

describe("a body that is not the JSON of a message is refused", () => {
  const bodies = [
    " ",
    "null",
    "true",
    "1",
    '"a"',
    "[]",
    "[{}]",
    "{",
    "}",
    '{"name":"a"',
    '{"name":"a",}',
    "{name:'a'}",
    '{"name":"a"} {}',
    '{"name":"a"}x',
    '{"int32Value":01}',
    '{"int32Value":+1}',
    '{"int32Value":0x1}',
    '{"doubleValue":NaN}',
    '{"doubleValue":.5}',
    '{"name":"a\nb"}',
    "// a\n{}",
    "name=a",
    "<name>a</name>",
    "undefined",
    "\u0000",
  ];
  for (const body of bodies) {
    it(JSON.stringify(body), async () => {
      expect(await post(body)).toEqual(invalid("JSON_INVALID"));
    });
  }

  const bytes: [what: string, body: Uint8Array][] = [
    ["a lone byte", Buffer.from([...Buffer.from('{"name":"'), 0xff, ...Buffer.from('"}')])],
    ["an overlong slash", Buffer.from([...Buffer.from('{"name":"'), 0xc0, 0xaf, ...Buffer.from('"}')])],
    ["a surrogate", Buffer.from([...Buffer.from('{"name":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')])],
    ["UTF-16", Buffer.from('{"name":"a"}', "utf16le")],
    ["an end within a character", Buffer.from([...Buffer.from('{"name":"a"}'), 0xc3])],
  ];
  for (const [what, body] of bytes) {
    it(`bytes that are not UTF-8: ${what}`, async () => {
      expect(await post(body)).toEqual(invalid("JSON_INVALID"));
    });
  }

  const nestings: [what: string, open: string, close: string][] = [
    ["messages", '{"nested":{"child":', "}}"],
    ["lists in a Value", '{"value":[', "]}"],
    ["messages around an unsafe integer", '{"nested":{"count":9007199254740993,"child":', "}}"],
    ["arrays", "[", "]"],
  ];
  for (const [what, open, close] of nestings) {
    for (const depth of [200, 1000, 2000, 4000, 8000, 100_000]) {
      it(`${depth} levels of ${what}`, async () => {
        const repeated = open.replace(/^\{"(nested|value)":/, "");
        const prefix = open.slice(0, open.length - repeated.length);
        const body = `${prefix}${repeated.repeat(depth)}{}${close[0]?.repeat(depth)}${prefix === "" ? "" : "}"}`;
        expect(await post(body)).toMatchObject({ status: 400, code: "INVALID_ARGUMENT" });
      });
    }
  }
});

describe("a body that is JSON but not an object", () => {
  it.each([
    ["[]", "an array"],
    ['"x"', "a string"],
    ["7", "a number"],
    ["null", "null"],
    ["true", "a boolean"],
  ])("is refused with its actual type: %s", async (body, kind) => {
    const { transcoder } = serveRules([{ post: "/v1", body: "*" }]);
    const { text } = await send(transcoder, "POST /v1", { body });
    expect(JSON.parse(text).message).toBe(`the body is ${kind}; send a JSON object, such as {}`);
  });
});
