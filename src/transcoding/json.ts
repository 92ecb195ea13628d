/** Reads request messages out of JSON, strictly, and says which field is at fault. */
import type { DescMessage, JsonValue, MessageShape, Registry } from "@bufbuild/protobuf";
import { fromJsonString } from "@bufbuild/protobuf";
import { refuse, refuseField } from "../errors.ts";
import { explainJsonError } from "./fields.ts";
import { findFault, findLooseValue, findUnsafeInteger, UnsafeInteger } from "./json-faults.ts";

/**
 * Reads a message out of JSON text. Unknown fields, duplicate fields, values that ProtoJSON does not allow and
 * integers that JSON numbers can not carry exactly are refused.
 *
 * @throws JSON_INVALID, FIELD_INVALID
 */
export function parseJsonMessage<Desc extends DescMessage>(
  schema: Desc,
  text: string,
  registry: Registry,
): MessageShape<Desc> {
  let message: MessageShape<Desc>;
  try {
    message = fromJsonString(schema, text, { registry, ignoreUnknownFields: false });
  } catch (error) {
    throw explain(schema, text, registry, error);
  }
  refuseLooseValues(schema, text, registry);
  return message;
}

/**
 * Refuses what protobuf-es would take: values that are not strictly of their type, and integers beyond
 * ±(2^53 − 1) that stand as bare numbers where an integer field wants them. JSON.parse rounds those to the
 * nearest double, so 9007199254740993 would arrive as …992 and nobody would know. Written as a string they
 * arrive exactly. Fields of type double keep what a double holds.
 *
 * @throws FIELD_INVALID naming the field
 */
export function refuseLooseValues(schema: DescMessage, text: string, registry: Registry): void {
  let json: unknown;
  try {
    // 2^53 has 16 digits; exponents can make large integers of few digits.
    json = /\d{16}|\d[eE]\+?\d/.test(text) ? JSON.parse(text, markUnsafeInteger) : JSON.parse(text);
  } catch {
    return; // Not JSON at all; whoever parses it in earnest says so better.
  }
  const fault = findUnsafeInteger(schema, json, registry) ?? findLooseValue(schema, json, registry);
  if (fault !== undefined) throw refuseField(fault.field, fault.reason);
}

function markUnsafeInteger(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  return new UnsafeInteger(context?.source ?? String(value));
}

/** Decodes UTF-8 and refuses what is none. */
export function decodeJsonText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refuse("JSON_INVALID", "the JSON text is not valid UTF-8");
  }
}

/** Parses JSON that is not yet tied to a message type. @throws JSON_INVALID */
export function parseJsonValue(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw refuse("JSON_INVALID", `the body is not JSON: ${explainJsonError(error)}`);
  }
}

function explain(schema: DescMessage, text: string, registry: Registry, error: unknown): Error {
  const reason = explainJsonError(error);
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch {
    return refuse("JSON_INVALID", `the body is not JSON: ${reason}`);
  }
  const fault = findFault(schema, json, registry);
  if (fault !== undefined) return refuseField(fault.field, fault.reason);
  // The parsed value has no fault that the text has: a key that stands twice, of which one was dropped.
  const duplicate = /"((?:[^"\\]|\\.)*)"/.exec(reason)?.[1];
  if (duplicate !== undefined && /duplicate/i.test(reason))
    return refuseField(duplicate, "stands more than once");
  return refuse("JSON_INVALID", `the body is not the JSON of this request: ${reason}`);
}
