/** The patterns of the API description, compared with the protos' patterns. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { getOption } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type as Type } from "@bufbuild/protobuf/wkt";
import {
  type FieldRules,
  field as fieldOption,
  Ignore,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, it } from "vitest";
import { loadPackages } from "../support/whole-program.ts";
import { describeRuled } from "./describe-rules.ts";

/** The pattern of an optional text with this rule, or of a text that may be empty. */
function describePattern(pattern: string): string {
  const rules = { ignore: Ignore.IF_ZERO_VALUE, type: { case: "string", value: { pattern } } } as const;
  return describeRuled(Type.STRING, rules).properties?.value?.pattern ?? "";
}

it.each([
  ["^[a-z./-]+$", "^[a-z./-]*$"],
  ["^0x[0-9a-f]{40}$", "^(?:0x[0-9a-f]{40})?$"],
  ["^[a-z]+=", "^$|^[a-z]+="],
  ["=$", "^$|=$"],
  ["^a|b$", "^$|^a|b$"],
  ["^a\\$", "^$|^a\\$"],
  ["^[^\\x00-\\x1f\\x7f]*$", "^[^\\u0000-\\u001F\\u007F]*$"],
  ["^\\\\x41*$", "^(?:\\\\x41*)?$"],
])("the pattern of an optional text: %s becomes %s", (pattern, expected) => {
  expect(describePattern(pattern)).toBe(expected);
});

/** Each pattern of a proto must match one of these. */
const texts = [
  [
    "a",
    "Ada",
    "user/ada",
    "name/\u00e9",
    "alice=",
    "team=blue",
    "-team=blue",
    "CN=release",
    "a=b\nc",
    "\u0085",
  ],
  [`0x${"a1".repeat(20)}`, `0x${"a1".repeat(20)}0`, "0f".repeat(32), "0f".repeat(33), "0F"],
  ["device.example", "*.device.example", "192.0.2.1", "2001:db8::1", "ada@example.com", "urn:device:1"],
  ["vpn.example:51820", "[2001:db8::1]:51820", "targets/app-1.2.bin", "../app", "1.2.3+4"],
].flat();

const packages = await loadPackages();
const patterns = new Set(
  packages
    .flatMap(({ files }) => files.flatMap(({ services }) => services))
    .flatMap((service) => service.methods)
    .flatMap(({ input }) => listPatterns(input, new Set())),
);

/** Lists the patterns of a message's fields, at any depth. */
function listPatterns(desc: DescMessage, seen: Set<DescMessage>): string[] {
  if (seen.has(desc)) return [];
  seen.add(desc);
  return desc.fields.flatMap((field: DescField) => [
    ...patternsOf(getOption(field, fieldOption)),
    ...(field.message === undefined ? [] : listPatterns(field.message, seen)),
  ]);
}

function patternsOf({ type }: FieldRules): string[] {
  if (type.case === "string") return type.value.pattern === "" ? [] : [type.value.pattern];
  if (type.case === "repeated") return type.value.items === undefined ? [] : patternsOf(type.value.items);
  if (type.case !== "map") return [];
  return [type.value.keys, type.value.values].flatMap((part) => (part === undefined ? [] : patternsOf(part)));
}

describe("the description of a proto's pattern", () => {
  it.each([...patterns])("matches the empty text and the same others: %s", (pattern) => {
    const described = describePattern(pattern);
    const matched = (expression: string) => texts.filter((text) => new RegExp(expression, "u").test(text));
    expect(matched(described)).toEqual(matched(pattern));
    expect(matched(pattern)).not.toEqual([]);
    expect(described).toMatch(/^[^\\]*(\\[^x][^\\]*)*$/);
    expect(new RegExp(described, "u").test("")).toBe(true);
  });
});
