/** Translates protovalidate rules (buf/validate/validate.proto) to JSON Schema, and the rest to sentences. */
import { type DescEnum, type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { isReflectList, isReflectMessage, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  type FieldRules,
  FieldRulesSchema,
  field as fieldOption,
  Ignore,
  message as messageOption,
  oneof as oneofOption,
  type Rule,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { listNames, listOneofRules } from "../message-limits/oneof-rules.ts";
import { allowZero } from "./absence.ts";
import { describeBytes } from "./base64.ts";
import type { Schema } from "./document.ts";
import { type NamedRule, translateRules } from "./rule-keywords.ts";

/** A schema with its rules, and sentences for rules that JSON Schema cannot express. */
export interface Constrained {
  readonly schema: Schema;
  readonly sentences: readonly string[];
}

/**
 * How the server treats a type's zero value: "refused" as if it were absent, "taken" regardless of the other
 * rules, or "ruled" like any other value.
 */
type Zero = "refused" | "taken" | "ruled";

/**
 * Adds a field's rules to its schema, including rules for elements, keys and values.
 *
 * @param isRequired whether a request without the field is refused
 */
export function constrainField(field: DescField, schema: Schema, isRequired: boolean): Constrained {
  if (!hasOption(field, fieldOption)) return { schema, sentences: [] };
  const rules = getOption(field, fieldOption);
  if (rules.ignore === Ignore.ALWAYS) return { schema, sentences: [] };
  const { schema: whole, sentences } = constrain(
    schema,
    rules,
    field.enum,
    findZero(field, rules, isRequired),
  );
  return constrainParts(whole, sentences, rules, field.enum);
}

function findZero(field: DescField, rules: FieldRules, isRequired: boolean): Zero {
  if (field.presence !== FeatureSet_FieldPresence.IMPLICIT) return zeroOfPart(rules);
  // Without presence, zero and an omitted field are the same.
  if (rules.required) return "refused";
  return isRequired ? "ruled" : "taken";
}

function zeroOfPart({ ignore }: FieldRules): Zero {
  return ignore === Ignore.IF_ZERO_VALUE ? "taken" : "ruled";
}

function constrain(schema: Schema, rules: FieldRules, desc: DescEnum | undefined, zero: Zero): Constrained {
  const said = [...rules.cel.map(sayRule), ...rules.celExpression.map(sayExpression)];
  const cel = said.filter((sentence) => schema.type !== "integer" || sentence !== "must be a whole number");
  const { case: kind, value } = rules.type;
  const typeField = FieldRulesSchema.fields.find(({ localName }) => localName === kind);
  const named =
    typeField?.message === undefined || value === undefined ? [] : listSet(reflect(typeField.message, value));
  if (schema.contentEncoding === "base64") {
    const { schema: bytes, maxBytes, others } = constrainBytes(named, zero);
    const sentences = [
      // The length of base64 is exact only for whole groups of three bytes.
      ...(maxBytes !== undefined && maxBytes % 3 !== 0 ? [`must be at most ${maxBytes} bytes`] : []),
      ...translateRules("bytes", others).flatMap(({ sentence }) => sentence ?? []),
    ];
    return { schema: { ...schema, ...bytes }, sentences: [...cel, ...sentences] };
  }
  const translations =
    typeField === undefined ? [] : translateRules(typeField.name, named, kind === "enum" ? desc : undefined);
  const keywords: Schema = Object.assign({}, ...translations.map((translation) => translation.keywords));
  const whole = {
    ...withoutBounds(zero === "refused" ? excludeZero(schema) : schema, keywords),
    ...keywords,
  };
  return {
    schema: zero === "taken" ? allowZero(whole) : whole,
    sentences: [...cel, ...translations.flatMap(({ sentence }) => sentence ?? [])],
  };
}

/** Separates the length rules from the other rules for bytes. */
function constrainBytes(
  rules: readonly NamedRule[],
  zero: Zero,
): { readonly schema: Schema; readonly maxBytes: number | undefined; readonly others: readonly NamedRule[] } {
  const lengths = new Map(rules.filter(([name]) => /^(min_|max_)?len$/.test(name)));
  const read = (name: string): number | undefined => {
    const length = lengths.get("len") ?? lengths.get(name);
    return length === undefined ? undefined : Number(length);
  };
  const maxBytes = read("max_len");
  return {
    schema: describeBytes({
      minBytes: Math.max(read("min_len") ?? 0, zero === "refused" ? 1 : 0),
      maxBytes,
      mayBeEmpty: zero === "taken",
    }),
    maxBytes: lengths.has("len") ? undefined : maxBytes,
    others: rules.filter(([name]) => !lengths.has(name)),
  };
}

/** Drops a type's bounds if a rule has an exclusive bound on the same side, or several ranges. */
function withoutBounds(schema: Schema, { exclusiveMinimum, exclusiveMaximum, anyOf }: Schema): Schema {
  const { minimum, maximum, ...others } = schema;
  return {
    ...others,
    ...(minimum === undefined || anyOf || exclusiveMinimum !== undefined ? {} : { minimum }),
    ...(maximum === undefined || anyOf || exclusiveMaximum !== undefined ? {} : { maximum }),
  };
}

function constrainParts(
  schema: Schema,
  sentences: readonly string[],
  { type }: FieldRules,
  desc: DescEnum | undefined,
): Constrained {
  const all = [...sentences];
  const part = (partSchema: Schema, rules: FieldRules | undefined, what: string): Schema => {
    if (rules === undefined) return partSchema;
    const constrained = constrain(partSchema, rules, desc, zeroOfPart(rules));
    all.push(...constrained.sentences.map((sentence) => `${what} ${sentence}`));
    return constrained.schema;
  };
  if (type.case === "repeated" && schema.items !== undefined) {
    return { schema: { ...schema, items: part(schema.items, type.value.items, "each") }, sentences: all };
  }
  const values = schema.additionalProperties;
  if (type.case === "map" && typeof values === "object") {
    const additionalProperties = part(values, type.value.values, "each value");
    const propertyNames = part(schema.propertyNames ?? { type: "string" }, type.value.keys, "each key");
    return { schema: { ...schema, additionalProperties, propertyNames }, sentences: all };
  }
  return { schema, sentences: all };
}

/** Lists the rules that are set, with plain values. */
function listSet(rules: ReflectMessage): NamedRule[] {
  return rules.fields
    .filter((field) => rules.isSet(field) && !["example", "items", "keys", "values"].includes(field.name))
    .map((field) => [field.name, toPlain(rules.get(field))]);
}

function toPlain(value: unknown): unknown {
  if (isReflectList(value)) return [...value].map(toPlain);
  return isReflectMessage(value) ? value.message : value;
}

/** Excludes a type's zero value from a schema. */
function excludeZero(schema: Schema): Schema {
  if (schema.enum !== undefined) return { ...schema, enum: schema.enum.slice(1) };
  const isBig = schema.format === "int64" || schema.format === "uint64";
  if (isBig && schema.type === "string") return { ...schema, not: { const: "0" } };
  const zero: Readonly<Record<string, Schema>> = {
    string: { minLength: 1 },
    array: { minItems: 1 },
    object: { minProperties: 1 },
    boolean: { const: true },
    integer: { not: { const: 0 } },
    number: { not: { const: 0 } },
  };
  return { ...schema, ...zero[String(schema.type)] };
}

/** Describes message rules that involve several fields. */
export function sayMessageRules(desc: DescMessage): string[] {
  const sentences = desc.oneofs.map((oneof) => {
    const names = listNames(oneof.fields.map(({ jsonName }) => jsonName));
    const isRequired = hasOption(oneof, oneofOption) && getOption(oneof, oneofOption).required;
    return isRequired ? `set exactly one of ${names}` : `set at most one of ${names}`;
  });
  if (!hasOption(desc, messageOption)) return sentences;
  const rules = getOption(desc, messageOption);
  const oneofs = listOneofRules(desc).map(({ text }) => text);
  return [...sentences, ...oneofs, ...rules.cel.map(sayRule), ...rules.celExpression.map(sayExpression)];
}

function sayRule({ message, expression }: Rule): string {
  return message === "" ? sayExpression(expression) : message;
}

function sayExpression(expression: string): string {
  return `must hold: \`${expression}\``;
}
