/** Translates each protovalidate rule to JSON Schema keywords, or to a sentence. */
import type { DescEnum } from "@bufbuild/protobuf";
import type { Schema } from "./document.ts";
import { hostAndPortPattern } from "./host-pattern.ts";

/** A translated rule: keywords if possible, otherwise a sentence that begins with "must". */
export interface Translation {
  readonly keywords?: Schema;
  readonly sentence?: string;
}

type Translate = (value: never) => Translation;

const keywords = (schema: Schema): Translation => ({ keywords: schema });

/** Without 64-bit numbers: JSON carries them as strings, which have no minimum and no maximum. */
const numberKinds = new Set(["float", "double", "int32", "uint32", "sint32", "fixed32", "sfixed32"]);

/** By kind and rule. */
const tables: Readonly<Record<string, Readonly<Record<string, Translate>>>> = {
  number: {
    const: (value: number) => keywords({ const: value }),
    in: (values: number[]) => keywords({ enum: values }),
    not_in: (values: number[]) => keywords({ not: { enum: values } }),
    lt: (value: number) => keywords({ exclusiveMaximum: value }),
    lte: (value: number) => keywords({ maximum: value }),
    gt: (value: number) => keywords({ exclusiveMinimum: value }),
    gte: (value: number) => keywords({ minimum: value }),
    // JSON has no other numbers.
    finite: () => ({}),
  },
  bool: { const: (value: boolean) => keywords({ const: value }) },
  string: {
    const: (value: string) => keywords({ const: value }),
    in: (values: string[]) => keywords({ enum: values }),
    not_in: (values: string[]) => keywords({ not: { enum: values } }),
    len: (value: bigint) => keywords({ minLength: Number(value), maxLength: Number(value) }),
    min_len: (value: bigint) => keywords({ minLength: Number(value) }),
    max_len: (value: bigint) => keywords({ maxLength: Number(value) }),
    // A character is 1 to 4 bytes of UTF-8 (RFC 3629, section 3).
    len_bytes: (value: bigint) => ({
      keywords: { minLength: Math.ceil(Number(value) / 4), maxLength: Number(value) },
      sentence: `must be ${value} bytes of UTF-8`,
    }),
    min_bytes: (value: bigint) => ({
      keywords: { minLength: Math.ceil(Number(value) / 4) },
      sentence: `must be at least ${value} bytes of UTF-8`,
    }),
    max_bytes: (value: bigint) => ({
      keywords: { maxLength: Number(value) },
      sentence: `must be at most ${value} bytes of UTF-8`,
    }),
    pattern: (value: string) =>
      isPattern(value)
        ? keywords({ pattern: value })
        : { sentence: `must match the RE2 expression \`${value}\`` },
    email: () => keywords({ format: "email" }),
    hostname: () => keywords({ format: "hostname" }),
    ipv4: () => keywords({ format: "ipv4" }),
    ipv6: () => keywords({ format: "ipv6" }),
    uri: () => keywords({ format: "uri" }),
    uri_ref: () => keywords({ format: "uri-reference" }),
    uuid: () => keywords({ format: "uuid" }),
    host_and_port: () => ({
      keywords: { pattern: hostAndPortPattern, maxLength: 253 + ":65535".length },
      sentence: "must be a host and a port, as host:port",
    }),
  },
  repeated: {
    min_items: (value: bigint) => keywords({ minItems: Number(value) }),
    max_items: (value: bigint) => keywords({ maxItems: Number(value) }),
    unique: (value: boolean) => keywords({ uniqueItems: value }),
  },
  map: {
    min_pairs: (value: bigint) => keywords({ minProperties: Number(value) }),
    max_pairs: (value: bigint) => keywords({ maxProperties: Number(value) }),
  },
  timestamp: {
    gt_now: () => ({ sentence: "must be in the future" }),
    lt_now: () => ({ sentence: "must be in the past" }),
  },
};

/** A rule and its value: "max_len" and 255n. */
export type NamedRule = readonly [name: string, value: unknown];

/**
 * Translates the rules of one value.
 *
 * @param kind kind of rules, as buf.validate.FieldRules names them: "string"
 * @param desc the enum, for rules of that kind
 */
export function translateRules(kind: string, rules: readonly NamedRule[], desc?: DescEnum): Translation[] {
  const outside = translateOutside(kind, rules);
  const others = outside === undefined ? rules : rules.filter(([name]) => !isBound(name));
  return [
    ...(outside === undefined ? [] : [outside]),
    ...others.map(([name, value]) => translateRule(kind, name, value, desc)),
  ];
}

function translateRule(kind: string, name: string, value: unknown, desc: DescEnum | undefined): Translation {
  if (desc !== undefined) return translateEnumRule(desc, name, value);
  const table = tables[numberKinds.has(kind) ? "number" : kind];
  const translate = table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
  return translate === undefined ? { sentence: sayRule(kind, name, value) } : translate(value as never);
}

function isBound(name: string): boolean {
  return /^[lg]te?$/.test(name);
}

/** If the upper bound is below the lower bound, the rule excludes the range between them. */
function translateOutside(kind: string, rules: readonly NamedRule[]): Translation | undefined {
  const upper = rules.find(([name]) => name === "lt" || name === "lte");
  const lower = rules.find(([name]) => name === "gt" || name === "gte");
  if (!numberKinds.has(kind) || upper === undefined || lower === undefined) return undefined;
  if (Number(upper[1]) > Number(lower[1])) return undefined;
  const ends = [upper, lower].map(
    ([name, value]) => translateRule(kind, name, value, undefined).keywords ?? {},
  );
  return { keywords: { anyOf: ends } };
}

function translateEnumRule(desc: DescEnum, name: string, value: unknown): Translation {
  const numbers = new Set([value].flat());
  const pick = (isIn: boolean): Translation => ({
    keywords: {
      enum: desc.values.filter(({ number }) => numbers.has(number) === isIn).map((one) => one.name),
    },
  });
  if (name === "in" || name === "const") return pick(true);
  return name === "not_in" ? pick(false) : {};
}

/** Puts a rule without a keyword into words: "must be a ulid", "must have prefix = \"a\"". */
function sayRule(kind: string, name: string, value: unknown): string {
  const words = name.replaceAll("_", " ");
  if (value === true) return `must be a valid ${words}`;
  return `must hold: ${kind}.${name} = ${JSON.stringify(value, bigintToText)}`;
}

function bigintToText(_: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return typeof value === "bigint" ? String(value) : value;
}

/** protovalidate uses RE2. Nearly all RE2 expressions mean the same in ECMA-262, which JSON Schema uses. */
function isPattern(text: string): boolean {
  try {
    new RegExp(text, "u");
    return true;
  } catch {
    return false;
  }
}
