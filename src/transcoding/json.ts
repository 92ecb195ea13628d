/** Reads request messages from JSON, strictly, and reports which field is invalid. */
import type { DescField, DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { fromJson, fromJsonString } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { excerpt } from "../errors/shorten.ts";
import { refuse, refuseField, refuseFields } from "../errors.ts";
import { scanJson } from "../message-limits/json-structure.ts";
import type { MessageLimits } from "../message-limits/structure-limits.ts";
import { explainJsonError } from "./fields.ts";
import { findFaults } from "./json-faults.ts";
import { markUnsafeInteger, UnsafeInteger } from "./strict-values.ts";

/** A message and the JSON value that it was read from. */
export interface JsonMessage<Desc extends DescMessage> {
  readonly message: MessageShape<Desc>;
  readonly json: JsonValue;
}

/**
 * Reads a message from JSON text: counts its parts, parses it once, checks each value once, and builds the
 * message.
 *
 * Refuses unknown and duplicate fields, and values outside ProtoJSON. Also refuses bare numbers beyond ±(2^53
 * − 1) in integer fields: JSON.parse rounds them to the nearest double, so 9007199254740993 would arrive as
 * …992. As strings they arrive exactly. Fields of type double accept any double.
 *
 * @param bytes UTF-8
 * @param field the field whose value the text is; undefined for the whole message
 * @throws MESSAGE_TOO_COMPLEX, JSON_INVALID, FIELD_INVALID
 */
export function parseJsonMessage<Desc extends DescMessage>(
  schema: Desc,
  bytes: Uint8Array,
  { registry, structure: limits }: Pick<MessageLimits, "registry" | "structure">,
  field?: DescField,
): JsonMessage<Desc> {
  const structure = scanJson(bytes, limits);
  const text = decodeJsonText(bytes);
  const wrap = (value: unknown): unknown => (field === undefined ? value : { [field.jsonName]: value });
  const marked = wrap(parseJsonText(text, structure.hasLongNumber ? markUnsafeInteger : undefined));
  const faults = findFaults(schema, marked, registry);
  if (faults !== undefined)
    throw refuseFields(faults.map(({ field, reason }) => ({ field, description: reason })));
  // JSON.parse keeps only the last member of each name.
  if (countMembers(marked) !== structure.members + (field === undefined ? 0 : 1))
    throw memberDuplicated(text);
  const json = (structure.hasLongNumber ? wrap(parseJsonText(text)) : marked) as JsonValue;
  try {
    return { message: fromJson(schema, json, { registry, ignoreUnknownFields: false }), json };
  } catch (error) {
    if (typeof json !== "object" || json === null || Array.isArray(json))
      throw refuse("JSON_INVALID", `the body is ${describeKind(json)}; send a JSON object, such as {}`);
    throw refuse("JSON_INVALID", `the body does not match this request: ${explainJsonError(error)}`);
  }
}

function describeKind(json: JsonValue): string {
  if (json === null) return "null";
  return Array.isArray(json) ? "an array" : `a ${typeof json}`;
}

/** Counts the members of all objects within a value. */
function countMembers(json: unknown): number {
  if (typeof json !== "object" || json === null || json instanceof UnsafeInteger) return 0;
  const values = Object.values(json);
  const own = Array.isArray(json) ? 0 : values.length;
  return values.reduce((sum: number, value) => sum + countMembers(value), own);
}

function memberDuplicated(text: string): Error {
  try {
    fromJsonString(StructSchema, text);
  } catch (error) {
    const name = /duplicate object key "(.*)"$/s.exec(explainJsonError(error))?.[1];
    if (name !== undefined) return refuseField(excerpt(name), "occurs more than once");
  }
  return refuse("JSON_INVALID", "the body contains an object with two members of the same name");
}

/** Decodes UTF-8 and refuses invalid bytes. */
export function decodeJsonText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refuse("JSON_INVALID", "the JSON text is not valid UTF-8");
  }
}

/**
 * Parses JSON that is not tied to a message type.
 *
 * @throws JSON_INVALID
 */
export function parseJsonText(text: string, reviver?: typeof markUnsafeInteger): unknown {
  try {
    return JSON.parse(text, reviver);
  } catch (error) {
    throw refuse("JSON_INVALID", `the body is not JSON: ${explainJsonError(error)}`);
  }
}
