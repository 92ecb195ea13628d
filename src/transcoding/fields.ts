/** Finds fields by the names that templates and query parameters use, and reads their values from text. */
import type { DescEnum, DescField, DescMessage, JsonValue, Message, Registry } from "@bufbuild/protobuf";
import { create, fromJsonString, ScalarType, toBinary } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { refuseField } from "../errors.ts";
import { whyNotStrictMessage, whyNotStrictScalar } from "./strict-values.ts";

/** The fields from a top-level field of the request to the target field. All but the last are messages. */
export type FieldPath = readonly [DescField, ...DescField[]];

/** Maximum depth of a path. Without a limit, recursion could exhaust the stack. */
const maxFieldDepth = 100;

/** Well-known messages whose JSON form is a string, which fits into a path or query parameter. */
const textMessages = new Set([
  "google.protobuf.Timestamp",
  "google.protobuf.Duration",
  "google.protobuf.FieldMask",
]);

/** Well-known messages with arbitrary JSON; a query parameter carries them as JSON text. */
const jsonMessages = new Set([
  "google.protobuf.Struct",
  "google.protobuf.Value",
  "google.protobuf.ListValue",
]);

/** Says why a text is not a valid field value. */
class FieldValueError extends Error {}

/**
 * Resolves names, starting from a message, to a field.
 *
 * @param byJsonName whether JSON names are accepted besides proto names
 * @returns the path, or a sentence that says why there is none
 */
export function resolveFieldPath(
  desc: DescMessage,
  names: readonly string[],
  byJsonName: boolean,
): FieldPath | string {
  if (names.length > maxFieldDepth) return `more than ${maxFieldDepth} levels deep`;
  const path: DescField[] = [];
  let message: DescMessage | undefined = desc;
  for (const name of names) {
    if (message === undefined) {
      return `"${path.map((field) => field.name).join(".")}" is not a message, so it has no field "${name}"`;
    }
    const field: DescField | undefined = message.fields.find(
      (candidate) => candidate.name === name || (byJsonName && candidate.jsonName === name),
    );
    if (field === undefined) return `${message.typeName} has no field "${name}"`;
    path.push(field);
    message = field.fieldKind === "message" && !isOpaque(field.message) ? field.message : undefined;
  }
  const [first, ...others] = path;
  return first === undefined ? "the name is empty" : [first, ...others];
}

/**
 * The message of a body, and the fields that the body sets: the message cannot show that a field was set to
 * zero.
 */
export interface BodyMessage {
  readonly message: Message;
  /** Returns whether the body sets a field. */
  readonly has: (path: FieldPath) => boolean;
}

/** True for messages with a textual form. */
function isTextual(desc: DescMessage): boolean {
  return textMessages.has(desc.typeName) || jsonMessages.has(desc.typeName) || isWrapperDesc(desc);
}

/** True for messages whose fields cannot be addressed: they have a textual form or can hold any type. */
function isOpaque(desc: DescMessage): boolean {
  return isTextual(desc) || desc.typeName === "google.protobuf.Any";
}

/** Joins the JSON names of a path with dots. */
export function describeFieldPath(path: FieldPath): string {
  return path.map((field) => field.jsonName).join(".");
}

/** The field that a path leads to. */
export function findLeaf(path: FieldPath): DescField {
  return path[path.length - 1] as DescField;
}

/**
 * Explains why a field cannot be a path variable (google/api/http.proto: a single value of a primitive type)
 * or a query parameter (one or several such values, or a well-known type with a textual form).
 *
 * @returns undefined if it can
 */
export function whyNotTextual(field: DescField, where: "path" | "query"): string | undefined {
  if (field.fieldKind === "map") return "is a map";
  if (field.fieldKind === "list" && where === "path") return "is repeated";
  if (field.message === undefined) return undefined;
  if (where === "query" && isTextual(field.message)) return undefined;
  return `is ${field.fieldKind === "list" ? "a list of messages" : "a message"} (${field.message.typeName})`;
}

/**
 * Reads a field value from text, with one text for each element of a repeated field.
 *
 * @returns a message of the field's parent type in which only this field is set
 * @throws FIELD_INVALID
 */
export function readFieldValue(path: FieldPath, texts: readonly string[], registry: Registry): Message {
  const field = findLeaf(path);
  try {
    const values = texts.map((text) => toJsonText(field, text));
    const value = field.fieldKind === "list" ? `[${values.join(",")}]` : (values[0] ?? "null");
    return fromJsonString(field.parent, `{${JSON.stringify(field.jsonName)}:${value}}`, { registry });
  } catch (error) {
    const reason = error instanceof FieldValueError ? error.message : explainJsonError(error);
    throw refuseField(describeFieldPath(path), reason);
  }
}

/** Replaces JavaScript types in protobuf-es errors with the JSON types that callers know. */
const jsonTypes: readonly [RegExp, string][] = [
  [/\bexpected Uint8Array\b/, "expected a base64 string"],
  [/\bexpected Array\b/, "expected a list"],
  [/\bexpected bigint \(/, "expected integer ("],
  [/\bexpected number \((?=u?int)/, "expected integer ("],
  [/\bgot Array\(\d+\)$/, "got a list"],
  [/\bgot object$/, "got an object"],
];

/** Extracts the reason from a protobuf-es error, whose message begins with the name of the Protobuf field. */
export function explainJsonError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message } = error.cause instanceof Error ? error.cause : error;
  // V8 quotes the text around the error, which may be a secret.
  const reason = message.replace(
    /^(Unexpected token .+?), (?:\.{3})?".*"(?:\.{3})? is not valid JSON$/su,
    "$1",
  );
  return jsonTypes.reduce((text, [theirs, ours]) => text.replace(theirs, ours), reason);
}

/**
 * Converts the text from a path or query to JSON of the field's type.
 *
 * @throws FieldValueError
 */
function toJsonText(field: DescField, text: string): string {
  if (field.message !== undefined && jsonMessages.has(field.message.typeName)) return requireJson(text);
  return JSON.stringify(toJsonValue(field, text));
}

function requireJson(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch {
    throw new FieldValueError(`expected JSON, got "${text}"`);
  }
}

function toJsonValue(field: DescField, text: string): JsonValue {
  if (field.enum !== undefined) return toEnumValue(field.enum, text);
  if (field.message === undefined) return toScalarValue(field.scalar, text);
  if (isWrapperDesc(field.message)) return toScalarValue(field.message.fields[0].scalar, text);
  return requireStrict(whyNotStrictMessage(field.message, text), text);
}

function toEnumValue(desc: DescEnum, text: string): JsonValue {
  if (/^-?\d+$/.test(text)) return Number(text);
  if (desc.values.some((value) => value.name === text)) return text;
  throw new FieldValueError(
    `"${text}" is not one of the values ${desc.values.map((value) => value.name).join(", ")}`,
  );
}

function toScalarValue(scalar: ScalarType | undefined, text: string): JsonValue {
  switch (scalar) {
    case ScalarType.BOOL:
      if (text === "true") return true;
      if (text === "false") return false;
      throw new FieldValueError(`expected true or false, got "${text}"`);
    case ScalarType.BYTES: {
      // A plus sign that was not percent-encoded arrives as a space. Base64 has no spaces.
      const base64 = text.replaceAll(" ", "+");
      return requireStrict(whyNotStrictScalar(scalar, base64), base64);
    }
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      if (/^(-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|NaN|-?Infinity)$/.test(text)) return text;
      throw new FieldValueError(`expected a number, got "${text}"`);
    case ScalarType.STRING:
      return text;
    default:
      if (/^-?\d+$/.test(text)) return text;
      throw new FieldValueError(`expected an integer, got "${text}"`);
  }
}

function requireStrict(why: string | undefined, text: string): string {
  if (why !== undefined) throw new FieldValueError(why);
  return text;
}

/** Whether a field was set, or why it was not. */
export type SetResult = "set" | "contradicts" | { readonly oneofTakenBy: DescField };

/** Finds the message that holds the last field of a path; undefined if a message on the path is absent. */
function findParent(target: ReflectMessage, path: FieldPath): ReflectMessage | undefined {
  let message = target;
  for (const field of path.slice(0, -1)) {
    if (!message.isSet(field)) return undefined;
    message = message.get(field) as ReflectMessage;
  }
  return message;
}

/**
 * Sets a field of a message, unless it already has a different value.
 *
 * @param value a message of the field's parent type with the field set, as returned by readFieldValue
 * @param isGiven whether the request already gave the field; the message cannot show that it was set to zero
 */
export function setField(
  target: ReflectMessage,
  path: FieldPath,
  value: Message,
  isGiven: boolean,
): SetResult {
  const leaf = findLeaf(path);
  const parent = findParent(target, path);
  if (parent !== undefined && (isGiven || parent.isSet(leaf))) {
    // Compared as bytes: NaN equals NaN, and zero equals an absent value.
    const before = toBinary(leaf.parent, onlyField(parent, leaf));
    return Buffer.compare(before, toBinary(leaf.parent, value)) === 0 ? "set" : "contradicts";
  }
  let message = target;
  for (const field of path) {
    const taken = field.oneof && message.oneofCase(field.oneof);
    if (taken !== undefined && taken !== field) return { oneofTakenBy: taken };
    if (field === leaf) break;
    const child = message.get(field) as ReflectMessage;
    if (!message.isSet(field)) message.set(field, child);
    message = child;
  }
  const source = reflect(leaf.parent, value);
  // A zero in a field without presence counts as not set, and need not be copied.
  if (source.isSet(leaf)) message.set(leaf, source.get(leaf));
  return "set";
}

/** Copies one field into an empty message of the same type, for comparison. */
function onlyField(message: ReflectMessage, field: DescField): Message {
  const copy = reflect(field.parent, create(field.parent));
  if (message.isSet(field)) copy.set(field, message.get(field));
  return copy.message;
}
