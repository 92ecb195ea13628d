/**
 * Adds the JSON values of an unset request field to its schema: null, and zero for a field without presence
 * (protobuf.dev/programming-guides/json).
 */
import type { Schema } from "./document.ts";

export function allowNull(schema: Schema): Schema {
  const { type, description, deprecated, ...others } = schema;
  if (type !== undefined && others.enum === undefined) {
    const types = [type].flat();
    return { ...schema, type: types.includes("null") ? types : [...types, "null"] };
  }
  // A schema without keywords accepts anything.
  if (type === undefined && Object.keys(others).length === 0) return schema;
  // A separate enum without null: generators create one type for it, but several for an enum with null.
  const plain = { ...(type && { type }), ...others };
  return { anyOf: [plain, { type: "null" }], description, deprecated };
}

/** Allows the type's zero value too, even if the field's rules would refuse it. */
export function allowZero(schema: Schema): Schema {
  if (schema.type === "string") return allowEmptyText(schema);
  const isNumber = schema.type === "integer" || schema.type === "number";
  if (!isNumber || takesZero(schema)) return schema;
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, enum: values, ...others } = schema;
  if (values !== undefined) return { ...others, enum: [0, ...values] };
  const bounds = omitUndefined({ minimum, maximum, exclusiveMinimum, exclusiveMaximum });
  return { ...others, anyOf: [{ const: 0 }, bounds] };
}

function takesZero({ minimum, maximum, exclusiveMinimum, exclusiveMaximum, enum: values }: Schema): boolean {
  const isAbove = (minimum ?? 0) <= 0 && (exclusiveMinimum ?? -1) < 0;
  const isBelow = (maximum ?? 0) >= 0 && (exclusiveMaximum ?? 1) > 0;
  return isAbove && isBelow && (values?.includes(0) ?? true);
}

function allowEmptyText(schema: Schema): Schema {
  const { enum: values, pattern, minLength } = schema;
  if (values !== undefined) return values.includes("") ? schema : { ...schema, enum: ["", ...values] };
  const { minLength: _, ...others } = schema;
  const open = minLength === undefined ? schema : others;
  if (pattern === undefined) {
    return minLength === undefined ? schema : { ...open, anyOf: [{ maxLength: 0 }, { minLength }] };
  }
  return new RegExp(pattern).test("") ? open : { ...open, pattern: orEmpty(pattern) };
}

/** A character, or a class of them, at least once. */
const repeated = /^\^((?:\[(?:[^\\\]]|\\.)+\]|[A-Za-z0-9]))\+\$$/;
/** Anchored at both ends, as a whole. */
const anchored = /^\^((?:[^|\\]|\\.)*)\$$/;

/** Allows the empty text in addition to what the pattern matches, which may end in any text. */
function orEmpty(pattern: string): string {
  const character = repeated.exec(pattern)?.[1];
  if (character !== undefined) return `^${character}*$`;
  const whole = anchored.exec(pattern)?.[1];
  return whole === undefined ? `^$|${pattern}` : `^(?:${whole})?$`;
}

function omitUndefined(schema: Readonly<Record<string, number | undefined>>): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
}
