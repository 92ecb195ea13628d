/** Reads request messages out of JSON, strictly, and says which field is at fault. */
import type { DescField, DescMessage, JsonValue, MessageShape, Registry } from "@bufbuild/protobuf";
import { fromJsonString, ScalarType } from "@bufbuild/protobuf";
import { isFieldError } from "@bufbuild/protobuf/reflect";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { refuse, refuseField } from "../errors.ts";
import { explainJsonError } from "./fields.ts";

/**
 * Reads a message out of JSON text. Unknown fields, duplicate fields and integers that JSON numbers can
 * not carry exactly are refused.
 *
 * @throws JSON_INVALID, FIELD_INVALID
 */
export function parseJsonMessage<Desc extends DescMessage>(
  schema: Desc,
  text: string,
  registry: Registry,
): MessageShape<Desc> {
  refuseUnsafeIntegers(schema, text);
  try {
    return fromJsonString(schema, text, { registry, ignoreUnknownFields: false });
  } catch (error) {
    throw explain(error);
  }
}

/** Decodes UTF-8 and refuses what is none. */
export function decodeJsonText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refuse("JSON_INVALID", "the JSON text is not valid UTF-8");
  }
}

function explain(error: unknown): Error {
  const reason = explainJsonError(error);
  const cause = error instanceof Error ? error.cause : undefined;
  if (isFieldError(cause)) {
    const field = cause.field();
    return refuseField(field.kind === "field" ? field.jsonName : field.name, reason);
  }
  const unknownKey = /key "(.*)" is unknown$/s.exec(reason)?.[1];
  if (unknownKey !== undefined) return refuseField(unknownKey, "there is no such field");
  return refuse("JSON_INVALID", `the body is not the JSON of this request: ${reason}`);
}

/** Stands for a number that a double does not hold exactly. */
class UnsafeInteger {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

/**
 * Refuses integers beyond ±(2^53 − 1) that stand as bare numbers where an integer field wants them.
 *
 * JSON.parse rounds them to the nearest double, so 9007199254740993 would arrive as …992 and nobody would
 * know. Written as a string they arrive exactly. Fields of type double keep what a double holds.
 *
 * @throws FIELD_INVALID naming the field
 */
export function refuseUnsafeIntegers(schema: DescMessage, text: string): void {
  // 2^53 has 16 digits; exponents can make large integers of few digits.
  if (!/\d{16}|\d[eE]\+?\d/.test(text)) return;
  let found = false;
  const mark = (_key: string, value: unknown, context?: { source?: string }): unknown => {
    if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
    found = true;
    return new UnsafeInteger(context?.source ?? String(value));
  };
  let json: unknown;
  try {
    json = JSON.parse(text, mark);
  } catch {
    return; // Not JSON at all; whoever parses it in earnest says so better.
  }
  if (found) checkMessage(schema, json, "");
}

function checkMessage(desc: DescMessage, json: unknown, path: string): void {
  if (isWrapperDesc(desc)) return checkScalar(desc.fields[0].scalar, json, path);
  // Any, Struct, Value: what is in them has no declared integers.
  if (desc.typeName.startsWith("google.protobuf.")) return;
  if (typeof json !== "object" || json === null || Array.isArray(json)) return;
  for (const [key, value] of Object.entries(json)) {
    const field = desc.fields.find((candidate) => candidate.jsonName === key || candidate.name === key);
    if (field !== undefined)
      checkField(field, value, path === "" ? field.jsonName : `${path}.${field.jsonName}`);
  }
}

function checkField(field: DescField, json: unknown, path: string): void {
  const check = (value: unknown, at: string): void => {
    if (field.message !== undefined) checkMessage(field.message, value, at);
    else checkScalar(field.scalar, value, at);
  };
  if (field.fieldKind === "list" && Array.isArray(json)) {
    json.forEach((item, index) => {
      check(item, `${path}[${index}]`);
    });
  } else if (field.fieldKind === "map" && typeof json === "object" && json !== null) {
    for (const [key, value] of Object.entries(json)) check(value, `${path}["${key}"]`);
  } else {
    check(json, path);
  }
}

function checkScalar(scalar: ScalarType | undefined, json: unknown, path: string): void {
  if (!(json instanceof UnsafeInteger)) return;
  if (scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT) return;
  throw refuseField(
    path,
    `${json.source} is beyond 2^53 - 1 and would lose digits as a JSON number; write it as a string`,
  );
}

/** Parses JSON that is not yet tied to a message type. @throws JSON_INVALID */
export function parseJsonValue(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw refuse("JSON_INVALID", `the body is not JSON: ${explainJsonError(error)}`);
  }
}
