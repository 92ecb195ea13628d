import { create, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { Ignore } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, it } from "vitest";
import type { Schema } from "../../src/openapi/document.ts";
import { Color, EverythingSchema } from "../gen/testing/kinds_pb.ts";
import { createCheck } from "./check-schema.ts";
import { describeRuled, describeRules, type Rules } from "./describe-rules.ts";

const document = describeRules([{ post: "/v1", body: "*" }]);
const everything = document.components.schemas["testing.Everything"]?.properties ?? {};
const check = createCheck(document);

/** Returns what is wrong with a message's JSON form, according to its schema. */
function checkMessage(message: MessageInitShape<typeof EverythingSchema>): string[] {
  const json = toJson(EverythingSchema, create(EverythingSchema, message), { alwaysEmitImplicit: true });
  return check(["components", "schemas", "testing.Everything"], json);
}

describe("a field's schema", () => {
  it.each<[fields: string, schema: Schema]>([
    ["name mask other-name", { type: "string" }],
    ["boolValue boolWrapper", { type: "boolean" }],
    [
      "int32Value sint32Value sfixed32Value",
      { type: "integer", format: "int32", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 },
    ],
    ["uint32Value fixed32Value", { type: "integer", format: "int64", minimum: 0, maximum: 4294967295 }],
    ["int64Value sint64Value sfixed64Value int64Wrapper", { type: "string", format: "int64" }],
    ["uint64Value fixed64Value", { type: "string", format: "uint64" }],
    ["floatValue", { type: "number", format: "float" }],
    ["doubleValue", { type: "number", format: "double" }],
    ["bytesValue bytesWrapper", { type: "string", format: "byte", contentEncoding: "base64" }],
    ["color", { type: "string", enum: ["COLOR_UNSPECIFIED", "RED", "GREEN", "ULTRAVIOLET"] }],
    ["tags", { type: "array", items: { type: "string" } }],
    ["nesteds", { type: "array", items: { $ref: "#/components/schemas/testing.Nested" } }],
    ["labels", { type: "object", additionalProperties: { type: "string" } }],
    ["totals", { type: "object", additionalProperties: { type: "string", format: "int64" } }],
    ["nested", { $ref: "#/components/schemas/testing.Nested" }],
    ["timestamp", { type: "string", format: "date-time" }],
    ["duration", { type: "string", pattern: "^-?[0-9]+(\\.[0-9]{1,9})?s$" }],
    ["struct", { type: "object", additionalProperties: true }],
    ["value", {}],
    ["list", { type: "array", items: {} }],
    ["empty", { type: "object", additionalProperties: false }],
  ])("%s is %j", (fields, schema) => {
    for (const field of fields.split(" ")) expect(everything[field], field).toEqual(schema);
  });

  it("matches the JSON of an empty message and of a full one", () => {
    expect(checkMessage({})).toEqual([]);
    const full = {
      name: "a",
      int64Value: -(2n ** 63n),
      uint64Value: 2n ** 64n - 1n,
      uint32Value: 2 ** 32 - 1,
      bytesValue: new Uint8Array(5),
      color: Color.RED,
      nested: { id: "n", child: { id: "m" } },
      nestedByNumber: { 7: { id: "n" } },
      labels: { a: "b" },
      timestamp: { seconds: 1n, nanos: 5 },
      duration: { seconds: -3n, nanos: -500_000_000 },
      struct: { a: [1, null, { b: true }] },
      choice: { case: "wrapped" as const, value: { value: "w" } },
      boolWrapper: false,
      int64Wrapper: 5n,
      stringWrapper: "s",
    };
    expect(checkMessage(full)).toEqual([]);
  });

  it("requires in a response exactly the fields that are always present", () => {
    const required = document.components.schemas["testing.Everything"]?.required ?? [];
    expect(required).toEqual(expect.arrayContaining(["name", "tags", "labels", "color"]));
    expect(required.filter((name) => ["nested", "nickname", "text", "timestamp"].includes(name))).toEqual([]);
  });

  it("explains which request fields exclude each other", () => {
    const request = document.components.schemas["testing.EverythingInput"];
    expect(request?.description).toBe("Set at most one of text, number, part and wrapped.");
  });
});

describe("proto comments", () => {
  it("become descriptions, with JSON names and without line breaks", () => {
    const { components } = describeRules([{ get: "/v1" }], {
      "testing.Everything": "Has display_name\nand more.\n\nAnd not_a_field.",
      "testing.Everything.display_name": "Names it.",
    });
    const schema = components.schemas["testing.Everything"];
    expect(schema?.description).toBe("Has displayName and more.\n\nAnd not_a_field.");
    expect(schema?.properties?.displayName?.description).toBe("Names it.");
  });

  it("keep the lines of an indented block, also without blank lines around it", () => {
    const { components } = describeRules([{ get: "/v1" }], {
      "testing.Everything": "Derived\nwith\n  a = 1\n  b = 2,\n    both known\nand\nmore.",
    });
    expect(components.schemas["testing.Everything"]?.description).toBe(
      "Derived with\n\n    a = 1\n    b = 2,\n      both known\n\nand more.",
    );
  });

  it("give an RPC its summary: the first sentence", () => {
    const { paths } = describeRules([{ get: "/v1" }], {
      "testing.Ruled.Rpc1": "Does it (RFC 1, section 2.3). Twice.",
    });
    expect(paths["/v1"]?.get?.summary).toBe("Does it (RFC 1, section 2.3)");
  });
});

const kinds = {
  string: Type.STRING,
  bytes: Type.BYTES,
  bool: Type.BOOL,
  int32: Type.INT32,
  double: Type.DOUBLE,
};

/** Rules for a field of one type, as a proto writes them: `string.min_len = 3`. */
function of(kind: keyof typeof kinds, value: object): [Type, Rules] {
  return [kinds[kind], { type: { case: kind, value } }];
}

describe("a protovalidate rule", () => {
  const bounds = (above: string, low: number, below: string, high: number) =>
    of("int32", { greaterThan: { case: above, value: low }, lessThan: { case: below, value: high } });

  it.each<[what: string, type: Type, rules: Rules, value: Schema]>([
    ["string.const", ...of("string", { const: "a" }), { const: "a" }],
    ["string.len", ...of("string", { len: 3n }), { minLength: 3, maxLength: 3 }],
    ["string.min_len", ...of("string", { minLen: 3n }), { minLength: 3 }],
    ["string.max_bytes", ...of("string", { maxBytes: 9n }), { maxLength: 9 }],
    ["string.min_bytes", ...of("string", { minBytes: 9n }), { minLength: 3 }],
    ["string.in", ...of("string", { in: ["a", "b"] }), { enum: ["a", "b"] }],
    ["string.not_in", ...of("string", { notIn: ["a"] }), { not: { enum: ["a"] } }],
    ["string.pattern", ...of("string", { pattern: "^a$" }), { pattern: "^a$" }],
    ["string.uuid", ...of("string", { wellKnown: { case: "uuid", value: true } }), { format: "uuid" }],
    ["bytes.len", ...of("bytes", { len: 32n }), { minLength: 43, maxLength: 44 }],
    ["bool.const", ...of("bool", { const: true }), { const: true }],
    ["double.in", ...of("double", { in: [0.5] }), { enum: [0.5] }],
    ["int32 inside bounds", ...bounds("gte", 1, "lt", 9), { minimum: 1, exclusiveMaximum: 9 }],
    [
      "int32 outside bounds",
      ...bounds("gt", 9, "lte", 1),
      { anyOf: [{ maximum: 1 }, { exclusiveMinimum: 9 }] },
    ],
    ["required for a string", Type.STRING, { required: true }, { minLength: 1 }],
    ["required for a number", Type.INT32, { required: true }, { not: { const: 0 } }],
    ["required for an int64", Type.INT64, { required: true }, { not: { const: "0" } }],
    ["required for a boolean", Type.BOOL, { required: true }, { const: true }],
  ])("%s becomes keywords", (_, type, rules, keywords) => {
    expect(describeRuled(type, rules).properties?.value).toMatchObject(keywords);
  });

  it("for a list applies to the list and to its items", () => {
    const items = { type: { case: "string", value: { maxLen: 5n } } } as const;
    const rules: Rules = { type: { case: "repeated", value: { minItems: 1n, unique: true, items } } };
    expect(describeRuled(Type.STRING, rules, Label.REPEATED)).toMatchObject({
      properties: { value: { minItems: 1, uniqueItems: true, items: { type: "string", maxLength: 5 } } },
      required: ["value"],
    });
  });

  const above5: Rules = { type: { case: "int64", value: { greaterThan: { case: "gt", value: 5n } } } };
  it.each<[what: string, type: Type, rules: Rules, sentence: string]>([
    [
      "an RE2 expression that ECMA-262 lacks",
      ...of("string", { pattern: "(?P<a>b)" }),
      "RE2 expression `(?P<a>b)`.",
    ],
    ["a 64-bit bound", Type.INT64, above5, 'Must hold: int64.gt = "5".'],
    [
      "a form without a format",
      ...of("string", { wellKnown: { case: "ulid", value: true } }),
      "be a valid ulid.",
    ],
    ["a byte length that base64 blurs", ...of("bytes", { maxLen: 64n }), "Must be at most 64 bytes."],
    [
      "CEL with a message",
      Type.STRING,
      { cel: [{ id: "a", message: "be good", expression: "!this" }] },
      "Be good.",
    ],
    ["CEL without one", Type.STRING, { celExpression: ["this == 'a'"] }, "Must hold: `this == 'a'`."],
  ])("%s becomes a sentence", (_, type, rules, sentence) => {
    expect(describeRuled(type, rules).properties?.value?.description).toContain(sentence);
  });

  const text = (value: object): Rules => of("string", value)[1];

  it("that does not apply is omitted", () => {
    const schema = describeRuled(Type.STRING, { ...text({ minLen: 3n }), ignore: Ignore.ALWAYS });
    expect(schema.properties?.value).toEqual({ type: ["string", "null"] });
  });

  it.each<[what: string, isRequired: boolean, rules: Rules]>([
    ["says so", true, { required: true }],
    ["rejects an empty text", true, text({ minLen: 1n })],
    ["rejects an empty text by its pattern", true, text({ pattern: "^a+$" })],
    ["would reject it, but ignores it", false, { ...text({ minLen: 1n }), ignore: Ignore.IF_ZERO_VALUE }],
    ["does not apply", false, { ignore: Ignore.ALWAYS, required: true }],
    ["accepts an empty text", false, text({ maxLen: 1n })],
  ])("that %s makes its field required: %s", (_, isRequired, rules) => {
    expect(describeRuled(Type.STRING, rules).required).toEqual(isRequired ? ["value"] : undefined);
  });
});
