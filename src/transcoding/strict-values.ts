/**
 * Finds JSON values that protobuf-es accepts but ProtoJSON does not: base64 with padding in the middle,
 * hexadecimal numbers, days that do not exist, integers whose digits a double would round.
 */
import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { excerpt } from "../errors/shorten.ts";
import { parseRfc3339 } from "../rfc3339.ts";

/** Explains why a JSON string is not a valid value of a scalar type; undefined if it may be. */
export function whyNotStrictScalar(scalar: ScalarType, text: string): string | undefined {
  switch (scalar) {
    case ScalarType.BYTES:
      return isBase64(text) ? undefined : `invalid base64: ${whyNotBase64(text)}`;
    case ScalarType.STRING:
    case ScalarType.BOOL:
      return undefined;
    default:
      if (/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return undefined;
      // The type itself checks words such as NaN.
      return /^-?[A-Z][a-z]/.test(text) ? undefined : `expected a number, got "${excerpt(text)}"`;
  }
}

/** RFC 4648, section 3.1: no line feeds, which base64 in PEM and MIME has. */
function whyNotBase64(text: string): string {
  if (/[\r\n]/.test(text)) return "line breaks are not allowed";
  return "expected the standard or the URL-safe alphabet";
}

/** RFC 4648, sections 4 and 5: with complete padding or none. */
export function isBase64(text: string): boolean {
  const padding = text.indexOf("=");
  const end = padding < 0 ? text.length : padding;
  // A single expression for the whole text would backtrack over all of it if its end is invalid.
  if (text.length - end > 2 || /[^A-Za-z0-9+/_-]/.test(text.slice(0, end))) return false;
  if (!/^=*$/.test(text.slice(end))) return false;
  return text.endsWith("=") ? text.length % 4 === 0 : text.length % 4 !== 1;
}

/** Explains why a JSON string is not a valid value of a well-known message type; undefined if it may be. */
export function whyNotStrictMessage(desc: DescMessage, text: string): string | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return parseRfc3339(text) !== undefined
        ? undefined
        : `expected a time such as 2026-01-31T12:00:00Z, got "${excerpt(text)}"`;
    case "google.protobuf.Duration":
      return /^-?\d{1,12}(\.\d{1,9})?s$/.test(text)
        ? undefined
        : `expected seconds such as 1.5s, got "${excerpt(text)}"`;
    default:
      return undefined;
  }
}

/** Replaces a bare number that a double cannot hold exactly in a parsed value. */
export class UnsafeInteger {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

/** A reviver for JSON.parse that replaces such a number with an UnsafeInteger. */
export function markUnsafeInteger(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  return new UnsafeInteger(context?.source ?? String(value));
}

/** The number that JSON.parse returns without the reviver. */
export function roundInteger(json: unknown): unknown {
  return json instanceof UnsafeInteger ? Number(json.source) : json;
}

const integers64: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT64,
  ScalarType.SINT64,
  ScalarType.SFIXED64,
  ScalarType.UINT64,
  ScalarType.FIXED64,
]);
const integers32: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT32,
  ScalarType.SINT32,
  ScalarType.SFIXED32,
  ScalarType.UINT32,
  ScalarType.FIXED32,
]);

/** Explains why a JSON number is not an integer of a scalar type; undefined if it may be. */
export function whyNotInteger(scalar: ScalarType, json: unknown): string | undefined {
  const has64Bits = integers64.has(scalar);
  if (!has64Bits && !integers32.has(scalar)) return undefined;
  if (typeof json === "number" && !Number.isInteger(json)) return `must be a whole number, got ${json}`;
  if (!(json instanceof UnsafeInteger)) return undefined;
  return has64Bits
    ? `${json.source} is beyond 2^53 - 1 and would lose digits as a JSON number; write it as a string`
    : `${json.source} is out of range`;
}
