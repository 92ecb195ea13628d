/**
 * Canonical JSON as TUF signs it (http://wiki.laptop.org/go/Canonical_JSON): sorted members, no spaces, only
 * quotation marks and backslashes escaped. Not RFC 8785: line feeds in strings are not escaped.
 */

/** A value in TUF metadata. Numbers are whole. */
export type Json = string | number | boolean | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [member: string]: Json;
}

/** Encodes a value as canonical JSON. Member names must be ASCII, which all languages sort the same way. */
export function encodeCanonical(value: Json): Uint8Array {
  return Buffer.from(format(value));
}

function format(value: Json): string {
  if (typeof value === "string") return `"${value.replaceAll(/["\\]/g, "\\$&")}"`;
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is not a whole number`);
    return String(value);
  }
  if (isList(value)) return `[${value.map(format).join(",")}]`;
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${format(name)}:${format(value[name] ?? "")}`).join(",")}}`;
}

function isList(value: readonly Json[] | JsonObject): value is readonly Json[] {
  return Array.isArray(value);
}

/**
 * Parses canonical JSON that the server wrote, whose only control characters are line feeds.
 *
 * @throws SyntaxError
 */
export function parseCanonical(bytes: Uint8Array): JsonObject {
  // JSON has no line feeds in strings; canonical JSON does not escape them.
  const text = Buffer.from(bytes).toString().replaceAll("\n", "\\n");
  return JSON.parse(text) as JsonObject;
}
