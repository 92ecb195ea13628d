/** Reads the fields in a query string. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { refuse } from "../errors.ts";
import { describeFieldPath, type FieldPath, findLeaf, resolveFieldPath, whyNotTextual } from "./fields.ts";

const plus = 0x2b;
const space = 0x20;

/** A field in the query, with all its texts in order. */
export interface QueryField {
  readonly path: FieldPath;
  readonly texts: readonly string[];
}

/**
 * Finds the field of every query parameter. Names are JSON or proto names, joined with dots for nested
 * messages. A repeated field accepts the parameter several times.
 *
 * @param rawQuery the text after the first "?" of the target, undecoded
 * @throws PARAMETER_UNKNOWN, PARAMETER_DUPLICATE, TARGET_INVALID
 */
export function readQuery(desc: DescMessage, rawQuery: string): QueryField[] {
  const fields = new Map<string, { path: FieldPath; texts: string[] }>();
  for (const [name, text] of splitQuery(rawQuery)) {
    const path = findField(desc, name);
    const key = describeFieldPath(path);
    const known = fields.get(key);
    if (known === undefined) {
      fields.set(key, { path, texts: [text] });
    } else if (findLeaf(path).fieldKind === "list") {
      known.texts.push(text);
    } else {
      throw parameterDuplicate(name, key);
    }
  }
  return [...fields.values()];
}

/**
 * Refuses every query parameter, for a call that takes all its fields from elsewhere.
 *
 * @throws PARAMETER_UNKNOWN
 */
export function requireNoQuery(rawQuery: string): void {
  const first = rawQuery.split("&").find((part) => part !== "");
  if (first === undefined) return;
  // The value may be a misplaced secret, so the message quotes only the name.
  const [name = ""] = first.split("=");
  throw parameterInvalid(decode(name), "this call takes its fields from the path and the body");
}

/**
 * Splits a query into its parameters.
 *
 * @returns the decoded name and text of each, and its part of the query
 * @throws TARGET_INVALID
 */
export function* splitQuery(rawQuery: string): Generator<[name: string, text: string, part: string]> {
  // Not `split`: a reader may stop early in a very long list.
  for (let start = 0, end = 0; end < rawQuery.length; start = end + 1) {
    end = rawQuery.indexOf("&", start);
    if (end < 0) end = rawQuery.length;
    const part = rawQuery.slice(start, end);
    if (part === "") continue;
    const equals = part.indexOf("=");
    const [name, text] = equals < 0 ? [part, ""] : [part.slice(0, equals), part.slice(equals + 1)];
    yield [decode(name), decode(text), part];
  }
}

/** Decodes one name or value of a query. */
function decode(text: string): string {
  try {
    const spaced = text.includes("+") ? toSpaces(text) : text;
    return spaced.includes("%") ? decodeURIComponent(spaced) : spaced;
  } catch {
    throw refuse("TARGET_INVALID", `"${text}" in the query is not valid percent-encoded UTF-8`);
  }
}

/**
 * A plus sign is a space, as in HTML forms. `replaceAll` would be ten times slower for a text full of plus
 * signs, because it concatenates a piece for each.
 */
function toSpaces(text: string): string {
  const bytes = Buffer.from(text);
  for (let at = bytes.indexOf(plus); at < bytes.length; at += 1) if (bytes[at] === plus) bytes[at] = space;
  return bytes.toString();
}

function findField(desc: DescMessage, name: string): FieldPath {
  const path = resolveFieldPath(desc, name.split("."), true);
  if (typeof path === "string") throw parameterInvalid(name, `${path}; ${listNames(desc)}`);
  const why = whyNotTextual(findLeaf(path), "query");
  if (why !== undefined) throw parameterInvalid(name, `the field ${why} and cannot be a query parameter`);
  return path;
}

function listNames(desc: DescMessage): string {
  const names = desc.fields.filter(isListed).map((field) => field.jsonName);
  return names.length === 0 ? "the call takes no parameters" : `the parameters are ${names.join(", ")}`;
}

function isListed(field: DescField): boolean {
  return field.fieldKind !== "map";
}

/**
 * Refuses a parameter that occurs more than once.
 *
 * @param field the name of the field that it sets
 */
export function parameterDuplicate(name: string, field: string): Error {
  const description = "occurs more than once";
  return refuse("PARAMETER_DUPLICATE", `query parameter "${name}" ${description}`, { parameter: name }, [
    { field, description },
  ]);
}

/** Refuses a parameter that the call does not support. */
export function parameterInvalid(name: string, why: string): Error {
  return refuse("PARAMETER_UNKNOWN", `query parameter "${name}": ${why}`, { parameter: name }, [
    { field: name, description: why },
  ]);
}
