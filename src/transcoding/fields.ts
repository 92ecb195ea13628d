/** Finds fields by the names that templates and query parameters use, and reads values out of text. */
import type { DescEnum, DescField, DescMessage, JsonValue, Message, Registry } from "@bufbuild/protobuf";
import { create, equals, fromJson, ScalarType } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";

/** From a top-level field of the request to the field that is meant: all but the last are messages. */
export type FieldPath = readonly [DescField, ...DescField[]];

/** A deeper path than any sane message has; beyond it recursion could exhaust the stack. */
const maxFieldDepth = 100;

/** Well-known messages whose JSON form is a string, and so fits into a path or a query parameter. */
const textMessages = new Set([
  "google.protobuf.Timestamp",
  "google.protobuf.Duration",
  "google.protobuf.FieldMask",
]);

/** Well-known messages whose JSON form is any JSON value; a query parameter carries it as JSON text. */
const jsonMessages = new Set([
  "google.protobuf.Struct",
  "google.protobuf.Value",
  "google.protobuf.ListValue",
]);

/** Says why text is no value of a field; the caller knows how to name the field. */
export class FieldValueError extends Error {}

/**
 * Follows names from a message to a field.
 *
 * @param byJsonName whether the JSON names count beside those of the proto file.
 * @returns the path, or the sentence that says why there is none.
 */
export function resolveFieldPath(
  desc: DescMessage,
  names: readonly string[],
  byJsonName: boolean,
): FieldPath | string {
  if (names.length > maxFieldDepth) return `more than ${maxFieldDepth} names deep`;
  const path: DescField[] = [];
  let message: DescMessage | undefined = desc;
  for (const name of names) {
    if (message === undefined) {
      return `"${path.map((field) => field.name).join(".")}" is no message, so it has no field "${name}"`;
    }
    const field: DescField | undefined = message.fields.find(
      (candidate) => candidate.name === name || (byJsonName && candidate.jsonName === name),
    );
    if (field === undefined) return `${message.typeName} has no field "${name}"`;
    path.push(field);
    message = field.fieldKind === "message" && !isTextual(field.message) ? field.message : undefined;
  }
  const [first, ...others] = path;
  return first === undefined ? "the name is empty" : [first, ...others];
}

/** True for messages that a single text can stand for. */
function isTextual(desc: DescMessage): boolean {
  return textMessages.has(desc.typeName) || jsonMessages.has(desc.typeName) || isWrapperDesc(desc);
}

/** Names the parts of a path as JSON does, joined with dots. */
export function describeFieldPath(path: FieldPath): string {
  return path.map((field) => field.jsonName).join(".");
}

/** The field that a path leads to. */
export function leafOf(path: FieldPath): DescField {
  return path[path.length - 1] as DescField;
}

/**
 * Tells why a field can not be a path variable or a query parameter; undefined if it can.
 *
 * @param allowRepeated true for query parameters, which can stand more than once.
 */
export function whyNotTextual(field: DescField, allowRepeated: boolean): string | undefined {
  switch (field.fieldKind) {
    case "map":
      return "is a map";
    case "message":
      return isTextual(field.message) ? undefined : `is a message (${field.message.typeName})`;
    case "list":
      if (!allowRepeated) return "is repeated";
      return field.listKind === "message" && !isTextual(field.message) ? "is a list of messages" : undefined;
    default:
      return undefined;
  }
}

/**
 * Reads the value of a field out of text, one text for each element of a repeated field.
 *
 * @returns a message of the field's parent type in which this field alone is set.
 * @throws FieldValueError
 */
export function readFieldValue(field: DescField, texts: readonly string[], registry: Registry): Message {
  const values = texts.map((text) => toJsonValue(field, text));
  const json = { [field.jsonName]: field.fieldKind === "list" ? values : (values[0] ?? null) };
  try {
    return fromJson(field.parent, json, { registry });
  } catch (error) {
    throw new FieldValueError(explainJsonError(error));
  }
}

/** Takes the reason out of an error of protobuf-es, whose message begins with the name of the Protobuf field. */
export function explainJsonError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function toJsonValue(field: DescField, text: string): JsonValue {
  if (field.enum !== undefined) return toEnumValue(field.enum, text);
  if (field.message !== undefined) return toMessageValue(field.message, text);
  return toScalarValue(field.scalar, text);
}

function toEnumValue(desc: DescEnum, text: string): JsonValue {
  if (/^-?\d+$/.test(text)) return Number(text);
  if (desc.values.some((value) => value.name === text)) return text;
  throw new FieldValueError(
    `"${text}" is not among the known values ${desc.values.map((value) => value.name).join(", ")}`,
  );
}

function toMessageValue(desc: DescMessage, text: string): JsonValue {
  if (isWrapperDesc(desc)) return toScalarValue(desc.fields[0].scalar, text);
  if (!jsonMessages.has(desc.typeName)) return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    throw new FieldValueError(`expected JSON, got "${text}"`);
  }
}

function toScalarValue(scalar: ScalarType | undefined, text: string): JsonValue {
  switch (scalar) {
    case ScalarType.BOOL:
      if (text === "true") return true;
      if (text === "false") return false;
      throw new FieldValueError(`expected true or false, got "${text}"`);
    case ScalarType.STRING:
      return text;
    case ScalarType.BYTES:
      // A plus sign that was not percent-encoded arrives as a space, which base64 does not have.
      return text.replaceAll(" ", "+");
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      if (/^(-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|NaN|-?Infinity)$/.test(text)) return text;
      throw new FieldValueError(`expected a number, got "${text}"`);
    default:
      if (/^-?\d+$/.test(text)) return text;
      throw new FieldValueError(`expected an integer, got "${text}"`);
  }
}

/** What became of an attempt to set a field. */
export type SetResult = "set" | "contradicts" | { readonly oneofTakenBy: DescField };

/**
 * Sets a field of a message unless something else stands there already.
 *
 * @param value a message of the field's parent type with the field set, as readFieldValue gives it.
 */
export function setField(target: ReflectMessage, path: FieldPath, value: Message): SetResult {
  let message = target;
  for (const field of path) {
    const taken = field.oneof && message.oneofCase(field.oneof);
    if (taken !== undefined && taken !== field) return { oneofTakenBy: taken };
    if (field === leafOf(path)) break;
    const child = message.get(field) as ReflectMessage;
    if (!message.isSet(field)) message.set(field, child);
    message = child;
  }
  const leaf = leafOf(path);
  if (message.isSet(leaf) && !equals(leaf.parent, onlyField(message, leaf), value)) return "contradicts";
  const source = reflect(leaf.parent, value);
  // A zero of a field without presence is not "set", and need not be.
  if (source.isSet(leaf)) message.set(leaf, source.get(leaf));
  return "set";
}

/** Copies one field into an empty message of the same type, to compare it. */
function onlyField(message: ReflectMessage, field: DescField): Message {
  const copy = reflect(field.parent, create(field.parent));
  copy.set(field, message.get(field));
  return copy.message;
}
