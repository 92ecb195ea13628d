/**
 * Computes the maximum message size of a call from the rules of its proto (buf/validate/validate.proto).
 *
 * A server reads and parses a message before it can check its rules. If the rules allow little, reading must
 * not cost much either.
 */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import {
  type FieldRules,
  field as fieldRules,
  Ignore,
  type StringRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { ServiceProfiles } from "../calls/service-profile.ts";

/** Every limit is a multiple of this. */
const stepBytes = 64 * 1024;
/** Extra share of the largest message, for JSON white space and for JSON or form escapes. */
const allowance = 1 / 4;

/** The largest encodings of a value. Infinity if its rules set no limit. */
interface Sizes {
  /** Bytes in the Protobuf wire format. */
  readonly wire: number;
  /** Bytes in JSON without white space. */
  readonly json: number;
}

const unbounded: Sizes = { wire: Infinity, json: Infinity };

const known = new WeakMap<DescMessage, number>();

/**
 * Returns the maximum message size of a call in bytes, compressed or not, in every protocol: the largest
 * message that the rules allow plus a quarter, rounded up to a multiple of 64 KiB. A service profile may
 * override it.
 *
 * @param generalBytes the limit for calls whose rules allow more or set no limit
 */
export function findMessageLimit(
  { parent, name, input }: DescMethod,
  generalBytes: number,
  profiles: ServiceProfiles = {},
): number {
  const ofProfile = profiles[parent.typeName]?.rpcs?.[name]?.maxBytes;
  return Math.min(ofProfile ?? known.getOrInsertComputed(input, computeLimit), generalBytes);
}

function computeLimit(input: DescMessage): number {
  const { wire, json } = sizeMessage(input, new Set());
  return Math.ceil((Math.max(wire, json) * (1 + allowance)) / stepBytes) * stepBytes;
}

/** @param around the enclosing messages: a recursive message has no limit */
function sizeMessage(desc: DescMessage, around: ReadonlySet<DescMessage>): Sizes {
  if (around.has(desc)) return unbounded;
  const inside = new Set([...around, desc]);
  const alone = desc.fields.filter(({ oneof }) => oneof === undefined);
  const chosen = desc.oneofs.map(({ fields }) => largest(fields.map((field) => sizeField(field, inside))));
  const { wire, json } = sum([...alone.map((field) => sizeField(field, inside)), ...chosen]);
  return { wire, json: json + "{}".length };
}

function sizeField(field: DescField, around: ReadonlySet<DescMessage>): Sizes {
  const rules = hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
  const name = Math.max(field.jsonName.length, field.name.length) + '"":,'.length;
  const tag = lengthOfVarint(field.number * 8);
  const { type } = ruled(rules);
  switch (field.fieldKind) {
    case "list": {
      const { items, maxItems } = type?.case === "repeated" ? type.value : {};
      const item = sizeValue(field, items, around);
      const { wire, json } = times(toLimit(maxItems), {
        wire: item.wire + tag,
        json: item.json + ",".length,
      });
      return { wire, json: json + name + "[]".length };
    }
    case "map": {
      const { keys, values, maxPairs } = type?.case === "map" ? type.value : {};
      const key = sizeScalar(field.mapKey, keys);
      const value = sizeValue(field, values, around);
      const entry = sum([key, value, { wire: 2, json: '"":,'.length }]);
      const { wire, json } = times(toLimit(maxPairs), { ...entry, wire: prefixed(entry.wire) + tag });
      return { wire, json: json + name + "{}".length };
    }
    default: {
      const { wire, json } = sizeValue(field, rules, around);
      return { wire: wire + tag, json: json + name };
    }
  }
}

/** The sizes of a field, or of one element of a list or map. */
function sizeValue(field: DescField, rules: FieldRules | undefined, around: ReadonlySet<DescMessage>): Sizes {
  if (field.message !== undefined) {
    const { wire, json } = sizeMessage(field.message, around);
    return { wire: prefixed(wire), json };
  }
  return field.enum === undefined ? sizeScalar(field.scalar, rules) : sizeEnum(field.enum);
}

function sizeEnum({ values }: DescEnum): Sizes {
  return { wire: 10, json: Math.max(11, ...values.map(({ name }) => name.length + '""'.length)) };
}

function sizeScalar(scalar: ScalarType | undefined, rules: FieldRules | undefined): Sizes {
  const { type } = ruled(rules);
  switch (scalar) {
    case ScalarType.STRING:
      return sizeText(type?.case === "string" ? type.value : {});
    case ScalarType.BYTES: {
      const bytes = type?.case === "bytes" ? toLimit(type.value.len, type.value.maxLen) : toLimit();
      return { wire: prefixed(bytes), json: Math.ceil(bytes / 3) * 4 + '""'.length };
    }
    default:
      // The longest varint has 10 bytes, and the longest number in JSON, a double, has 24.
      return { wire: 10, json: 24 };
  }
}

/**
 * A character has at most four bytes in UTF-8, and six as \uXXXX. Where the rules count bytes, JSON is
 * assumed to have the same bytes: such texts are tokens, URLs and the like.
 */
function sizeText(rules: Partial<StringRules>): Sizes {
  const values = rules.in ?? [];
  const longest = values.length === 0 ? Infinity : Math.max(...values.map((text) => text.length));
  const characters = Math.min(toLimit(rules.len, rules.maxLen), longest);
  const bytes = toLimit(rules.lenBytes, rules.maxBytes);
  return {
    wire: prefixed(Math.min(4 * characters, bytes)),
    json: Math.min(6 * characters, bytes) + '""'.length,
  };
}

/** Returns the rules that the validator applies. */
function ruled(rules: FieldRules | undefined): Partial<Pick<FieldRules, "type">> {
  return rules === undefined || rules.ignore === Ignore.ALWAYS ? {} : rules;
}

/** Returns the first number that is set. Zero means that a rule is not. */
function toLimit(...limits: (bigint | undefined)[]): number {
  const set = limits.find((limit) => limit !== undefined && limit > 0n);
  return set === undefined ? Infinity : Number(set);
}

function prefixed(bytes: number): number {
  return bytes === Infinity ? bytes : lengthOfVarint(bytes) + bytes;
}

function lengthOfVarint(value: number): number {
  return Math.max(1, Math.ceil(Math.log2(value + 1) / 7));
}

function times(count: number, { wire, json }: Sizes): Sizes {
  return { wire: count * wire, json: count * json };
}

function sum(sizes: readonly Sizes[]): Sizes {
  return {
    wire: sizes.reduce((total, { wire }) => total + wire, 0),
    json: sizes.reduce((total, { json }) => total + json, 0),
  };
}

function largest(sizes: readonly Sizes[]): Sizes {
  return {
    wire: Math.max(...sizes.map(({ wire }) => wire)),
    json: Math.max(...sizes.map(({ json }) => json)),
  };
}
