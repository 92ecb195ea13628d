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

/** Without 64-bit numbers: JSON carries them as strings, which have no minimum and no maximum. */
const numberKinds = new Set(["float", "double", "int32", "uint32", "sint32", "fixed32", "sfixed32"]);

/** Rules that are a keyword with the same value, by kind. */
const sameValue: Readonly<Record<string, Readonly<Record<string, keyof Schema>>>> = {
  number: {
    const: "const",
    in: "enum",
    lt: "exclusiveMaximum",
    lte: "maximum",
    gt: "exclusiveMinimum",
    gte: "minimum",
  },
  bool: { const: "const" },
  string: { const: "const", in: "enum", min_len: "minLength", max_len: "maxLength" },
  repeated: { min_items: "minItems", max_items: "maxItems", unique: "uniqueItems" },
  map: { min_pairs: "minProperties", max_pairs: "maxProperties" },
};

/** A character is 1 to 4 bytes of UTF-8 (RFC 3629, section 3). */
const minCharacters = (bytes: bigint): number => Math.ceil(Number(bytes) / 4);

/** All other rules, by kind. */
const tables: Readonly<Record<string, Readonly<Record<string, Translate>>>> = {
  number: {
    not_in: (values: number[]) => ({ keywords: { not: { enum: values } } }),
    // JSON has no other numbers.
    finite: () => ({}),
  },
  string: {
    not_in: (values: string[]) => ({ keywords: { not: { enum: values } } }),
    len: (value: bigint) => ({ keywords: { minLength: Number(value), maxLength: Number(value) } }),
    len_bytes: (value: bigint) => ({
      keywords: { minLength: minCharacters(value), maxLength: Number(value) },
      sentence: `must be ${value} bytes of UTF-8`,
    }),
    min_bytes: (value: bigint) => ({
      keywords: { minLength: minCharacters(value) },
      sentence: `must be at least ${value} bytes of UTF-8`,
    }),
    max_bytes: (value: bigint) => ({
      keywords: { maxLength: Number(value) },
      sentence: `must be at most ${value} bytes of UTF-8`,
    }),
    pattern: (value: string) =>
      isPattern(value)
        ? { keywords: { pattern: widenEscapes(value) } }
        : { sentence: `must match the RE2 expression \`${value}\`` },
    host_and_port: () => ({
      keywords: { pattern: hostAndPortPattern, maxLength: 253 + ":65535".length },
      sentence: "must be a host and a port, as host:port",
    }),
    ...Object.fromEntries(
      ["email", "hostname", "ipv4", "ipv6", "uri", "uuid"].map((format) => [
        format,
        () => ({ keywords: { format } }),
      ]),
    ),
    uri_ref: () => ({ keywords: { format: "uri-reference" } }),
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
  const group = numberKinds.has(kind) ? "number" : kind;
  const keyword = findOwn(sameValue[group], name);
  if (keyword !== undefined)
    return { keywords: { [keyword]: typeof value === "bigint" ? Number(value) : value } };
  const translate = findOwn(tables[group], name);
  return translate === undefined ? { sentence: sayRule(kind, name, value) } : translate(value as never);
}

function findOwn<T>(table: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
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

/** ECMA-262 has both forms, but in a Ruby expression \x80 is a byte. Go programs convert the upper-case form. */
function widenEscapes(pattern: string): string {
  return pattern.replace(/\\(?:x([0-9A-Fa-f]{2})|.)/gs, (same: string, hex?: string) =>
    hex === undefined ? same : `\\u00${hex.toUpperCase()}`,
  );
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
