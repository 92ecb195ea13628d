/** Finds the place in a JSON value that does not fit its message type. */
import type { DescField, DescMessage, JsonValue, Registry } from "@bufbuild/protobuf";
import { fromJson, ScalarType } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { explainJsonError } from "./fields.ts";
import { whyNotStrictMessage, whyNotStrictScalar } from "./strict-values.ts";

/** A place, in the names of the JSON form ("nested.items[2].count"), and what is wrong there. */
export interface Fault {
  readonly field: string;
  readonly reason: string;
}

/** Stands in a parsed value for a bare number that a double does not hold exactly. */
export class UnsafeInteger {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

/** As deep as protobuf-es reads JSON; what is deeper it refuses. */
const maxDepth = 100;

/** Finds a bare number that an integer field would receive rounded. */
export function findUnsafeInteger(desc: DescMessage, json: unknown, registry: Registry): Fault | undefined {
  return visitMessage(desc, json, registry, "", 0, (type, value, field) => {
    if (!(value instanceof UnsafeInteger) || typeof type !== "number") return undefined;
    if (type === ScalarType.DOUBLE || type === ScalarType.FLOAT) return undefined;
    const reason = `${value.source} is beyond 2^53 - 1 and would lose digits as a JSON number; write it as a string`;
    return { field, reason };
  });
}

/** Finds a string that protobuf-es reads as a value although ProtoJSON does not. */
export function findLooseValue(desc: DescMessage, json: unknown, registry: Registry): Fault | undefined {
  return visitMessage(desc, json, registry, "", 0, (type, value, field) => {
    if (typeof value !== "string") return undefined;
    const reason =
      typeof type === "number" ? whyNotStrictScalar(type, value) : whyNotStrictMessage(type, value);
    return reason === undefined ? undefined : { field, reason };
  });
}

/** Looks at a value that is no object of named fields: of a scalar type, or of a message with a form of its own. */
type Visit = (type: ScalarType | DescMessage, value: unknown, field: string) => Fault | undefined;

function visitMessage(
  desc: DescMessage,
  json: unknown,
  registry: Registry,
  at: string,
  depth: number,
  visit: Visit,
): Fault | undefined {
  if (depth > maxDepth) return undefined;
  if (isWrapperDesc(desc)) return visit(desc.fields[0].scalar, json, at);
  if (desc.typeName === "google.protobuf.Any") return visitAny(json, registry, at, depth, visit);
  if (hasCustomJsonRepresentation(desc)) return visit(desc, json, at);
  if (!isObject(json)) return undefined;
  for (const [key, value] of Object.entries(json)) {
    const field = findField(desc, key);
    const fault = field && visitField(field, value, registry, join(at, field.jsonName), depth + 1, visit);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** An Any says in "@type" what it holds; messages with a JSON form of their own stand under "value". */
function visitAny(
  json: unknown,
  registry: Registry,
  at: string,
  depth: number,
  visit: Visit,
): Fault | undefined {
  if (!isObject(json)) return undefined;
  const desc = registry.getMessage(String(json["@type"]).replace(/^.*\//, ""));
  if (desc === undefined) return undefined;
  return hasCustomJsonRepresentation(desc)
    ? visitMessage(desc, json.value, registry, join(at, "value"), depth + 1, visit)
    : visitMessage(desc, json, registry, at, depth + 1, visit);
}

function visitField(
  field: DescField,
  json: unknown,
  registry: Registry,
  at: string,
  depth: number,
  visit: Visit,
): Fault | undefined {
  for (const [value, place] of elementsOf(field, json, at)) {
    const { message, scalar } = field;
    const fault = message
      ? visitMessage(message, value, registry, place, depth, visit)
      : scalar && visit(scalar, value, place);
    if (fault) return fault;
  }
  return undefined;
}

/** The values of a field with their places: one, or those of a list or a map; none of what should be such. */
function* elementsOf(
  field: DescField,
  json: unknown,
  at: string,
): Generator<[value: unknown, place: string]> {
  if (field.fieldKind === "list") {
    for (const [index, item] of Array.isArray(json) ? json.entries() : []) yield [item, `${at}[${index}]`];
  } else if (field.fieldKind === "map") {
    for (const [key, value] of Object.entries(isObject(json) ? json : {}))
      yield [value, `${at}[${JSON.stringify(key)}]`];
  } else {
    yield [json, at];
  }
}

/**
 * Finds what protobuf-es refused: its errors name a field of a type, but not where in the value that stands.
 *
 * @returns undefined if it is not a field that is at fault.
 */
export function findFault(desc: DescMessage, json: JsonValue, registry: Registry): Fault | undefined {
  return faultOfMessage(desc, json, registry, "", 0);
}

function faultOfMessage(
  desc: DescMessage,
  json: JsonValue,
  registry: Registry,
  at: string,
  depth: number,
): Fault | undefined {
  if (depth > maxDepth) return { field: at, reason: `is nested more than ${maxDepth} levels deep` };
  if (desc.typeName === "google.protobuf.Any" && isObject(json)) return faultOfAny(json, registry, at, depth);
  if (hasCustomJsonRepresentation(desc) || !isObject(json)) {
    return at === "" ? undefined : tryMessage(desc, json, registry, at);
  }
  const seen = new Set<DescField>();
  for (const [key, value] of Object.entries(json)) {
    const field = findField(desc, key);
    if (field === undefined) return { field: join(at, key), reason: "there is no such field" };
    const place = join(at, field.jsonName);
    if (seen.has(field)) return { field: place, reason: "stands more than once" };
    for (const other of seen) {
      if (field.oneof === undefined || other.oneof !== field.oneof) continue;
      const reason = `only one of ${other.jsonName} and ${field.jsonName} may be set`;
      return { field: join(at, field.oneof.name), reason };
    }
    seen.add(field);
    const fault = faultOfField(field, value as JsonValue, registry, place, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function faultOfAny(
  json: Record<string, unknown>,
  registry: Registry,
  at: string,
  depth: number,
): Fault | undefined {
  const { "@type": typeUrl, ...content } = json;
  const desc = registry.getMessage(String(typeUrl).replace(/^.*\//, ""));
  if (desc === undefined) return { field: at, reason: `"@type" names no type that is known here` };
  return hasCustomJsonRepresentation(desc)
    ? tryMessage(desc, content.value as JsonValue, registry, join(at, "value"))
    : faultOfMessage(desc, content as JsonValue, registry, at, depth + 1);
}

function faultOfField(
  field: DescField,
  json: JsonValue,
  registry: Registry,
  at: string,
  depth: number,
): Fault | undefined {
  const reason = whyNotField(field, json, registry);
  if (reason === undefined) return undefined;
  for (const [value, place] of elementsOf(field, json, at)) {
    const element = value as JsonValue;
    if (field.message !== undefined && element !== null) {
      const fault = faultOfMessage(field.message, element, registry, place, depth);
      if (fault !== undefined) return fault;
    } else if (field.fieldKind === "list") {
      const ofElement = whyNotField(field, [element], registry);
      if (ofElement !== undefined) return { field: place, reason: ofElement.replace("list item #1: ", "") };
    }
  }
  return { field: at, reason };
}

function whyNotField(field: DescField, json: JsonValue, registry: Registry): string | undefined {
  try {
    fromJson(field.parent, { [field.jsonName]: json }, { registry });
    return undefined;
  } catch (error) {
    const isElement = field.fieldKind !== "list" || Array.isArray(json);
    const known = isElement ? field.enum?.values.map((value) => value.name).join(", ") : undefined;
    return known === undefined
      ? explainJsonError(error)
      : `expected one of ${known}, got ${JSON.stringify(json)}`;
  }
}

function tryMessage(desc: DescMessage, json: JsonValue, registry: Registry, at: string): Fault | undefined {
  try {
    fromJson(desc, json, { registry });
    return undefined;
  } catch (error) {
    return { field: at, reason: explainJsonError(error) };
  }
}

function findField(desc: DescMessage, key: string): DescField | undefined {
  return desc.fields.find((field) => field.jsonName === key || field.name === key);
}

function isObject(json: unknown): json is Record<string, unknown> {
  return (
    typeof json === "object" && json !== null && !Array.isArray(json) && !(json instanceof UnsafeInteger)
  );
}

function join(at: string, name: string): string {
  return at === "" ? name : `${at}.${name}`;
}
