/** Finds the first place in a JSON value that does not match its message type. */
import type { DescField, DescMessage, Registry } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { findSizeRules, whyTooLong, whyTooMany } from "../message-limits/size-rules.ts";
import { maxMessageDepth } from "../message-limits/structure-limits.ts";
import { createKeyCheck, whyNotElement, whyNotEntry, whyNotField, whyNotMessage } from "./json-values.ts";
import { UnsafeInteger } from "./strict-values.ts";

/** A place, in JSON names ("nested.items[2].count"), and what is wrong there. */
export interface Fault {
  readonly field: string;
  readonly reason: string;
}

/**
 * Checks every value once, in text order, and stops at the first fault: unknown or duplicate fields, values
 * of the wrong type or outside ProtoJSON, integers that lost digits, and lists that exceed their rules.
 *
 * The server builds a message only after this check, and only once.
 *
 * @returns undefined if every field is valid, or if the whole value is not an object
 */
export function findFault(desc: DescMessage, json: unknown, registry: Registry): Fault | undefined {
  return hasCustomJsonRepresentation(desc)
    ? undefined
    : faultOfFields({ desc, json, at: "", depth: 1 }, registry);
}

/** A value that should be a message, its place, and its nesting depth (including itself). */
interface Visit {
  readonly desc: DescMessage;
  readonly json: unknown;
  readonly at: string;
  readonly depth: number;
}

function faultOfMessage(visit: Visit, registry: Registry): Fault | undefined {
  const { desc, json, at } = visit;
  if (desc.typeName === "google.protobuf.Any" && isObject(json)) return faultOfAny(visit, registry);
  if (!hasCustomJsonRepresentation(desc) && isObject(json)) return faultOfFields(visit, registry);
  const reason = whyNotMessage(desc, json, registry);
  return reason === undefined ? undefined : { field: at, reason };
}

function faultOfFields({ desc, json, at, depth }: Visit, registry: Registry): Fault | undefined {
  if (depth > maxMessageDepth)
    return { field: at, reason: `is nested more than ${maxMessageDepth} levels deep` };
  if (!isObject(json)) return undefined;
  const fields = indexFields(desc);
  const seen = new Set<DescField>();
  const oneofs = new Map<DescField["oneof"], DescField>();
  for (const key of Object.keys(json)) {
    const field = fields.get(key);
    if (field === undefined) {
      if (isExtension(desc, key, registry)) continue;
      return { field: join(at, key), reason: "the field does not exist" };
    }
    const place = join(at, field.jsonName);
    if (seen.has(field)) return { field: place, reason: "occurs more than once" };
    seen.add(field);
    const value = json[key];
    // ProtoJSON: null leaves a scalar in a oneof unset.
    if (field.oneof !== undefined && !(value === null && field.fieldKind === "scalar")) {
      const other = oneofs.get(field.oneof);
      if (other !== undefined) {
        const reason = `only one of ${other.jsonName} and ${field.jsonName} may be set`;
        return { field: join(at, field.oneof.name), reason };
      }
      oneofs.set(field.oneof, field);
    }
    const fault = faultOfField(field, value, place, depth, registry);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** An Any names its type in "@type". A type with its own JSON form is in "value". */
function faultOfAny({ json, at, depth }: Visit, registry: Registry): Fault | undefined {
  const { "@type": typeUrl, ...content } = json as Record<string, unknown>;
  if (typeUrl === undefined && Object.keys(content).length === 0) return undefined;
  const desc = registry.getMessage(String(typeUrl).replace(/^.*\//, ""));
  if (desc === undefined) return { field: at, reason: `"@type" names an unknown type` };
  return hasCustomJsonRepresentation(desc)
    ? faultOfMessage({ desc, json: content.value, at: join(at, "value"), depth: depth + 1 }, registry)
    : faultOfFields({ desc, json: content, at, depth: depth + 1 }, registry);
}

function faultOfField(
  field: DescField,
  json: unknown,
  at: string,
  depth: number,
  registry: Registry,
): Fault | undefined {
  if (field.fieldKind === "list" && Array.isArray(json)) return faultOfList(field, json, at, depth, registry);
  if (field.fieldKind === "map" && isObject(json)) return faultOfMap(field, json, at, depth, registry);
  if (field.fieldKind === "message" && json !== null)
    return faultOfMessage({ desc: field.message, json, at, depth: depth + 1 }, registry);
  const reason = whyNotField(field, json, registry);
  if (reason !== undefined) return { field: at, reason: isSecret(field) ? hideValue(reason) : reason };
  // A character has at most two UTF-16 code units. The validator counts exactly, but is slow for a long text.
  const isTooLong = typeof json === "string" && json.length > 2 * findSizeRules(field).maxCharacters;
  return isTooLong ? { field: at, reason: whyTooLong(field) } : undefined;
}

function isSecret({ proto }: DescField): boolean {
  return proto.options?.debugRedact === true;
}

/** Removes the quoted value from "expected string, got 4711". */
function hideValue(reason: string): string {
  return reason.replace(/,? (got|:) .*$/s, "");
}

function faultOfList(
  field: DescField & { fieldKind: "list" },
  items: readonly unknown[],
  at: string,
  depth: number,
  registry: Registry,
): Fault | undefined {
  if (items.length > findSizeRules(field).maxItems) return { field: at, reason: whyTooMany(field) };
  for (const [index, json] of items.entries()) {
    const place = `${at}[${index}]`;
    if (field.listKind === "message" && json !== null) {
      const fault = faultOfMessage({ desc: field.message, json, at: place, depth: depth + 1 }, registry);
      if (fault !== undefined) return fault;
      continue;
    }
    const reason = whyNotElement(field, json, registry);
    if (reason !== undefined) return { field: place, reason };
  }
  return undefined;
}

function faultOfMap(
  field: DescField & { fieldKind: "map" },
  entries: Record<string, unknown>,
  at: string,
  depth: number,
  registry: Registry,
): Fault | undefined {
  const keys = Object.keys(entries);
  if (keys.length > findSizeRules(field).maxItems) return { field: at, reason: whyTooMany(field) };
  const isNewKey = createKeyCheck(field);
  for (const key of keys) {
    if (!isNewKey(key)) return { field: at, reason: `duplicate map key ${JSON.stringify(key)}` };
    const json = entries[key];
    const place = `${at}[${JSON.stringify(key)}]`;
    const reason = whyNotEntry(field, key, json, registry);
    if (reason !== undefined) return { field: json === null ? at : place, reason };
    if (field.mapKind !== "message") continue;
    const fault = faultOfMessage({ desc: field.message, json, at: place, depth: depth + 1 }, registry);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const knownFields = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** The fields of a message by both of their JSON names. */
function indexFields(desc: DescMessage): ReadonlyMap<string, DescField> {
  return knownFields.getOrInsertComputed(
    desc,
    ({ fields }) =>
      new Map(fields.flatMap((field) => [[field.name, field] as const, [field.jsonName, field] as const])),
  );
}

function isExtension(desc: DescMessage, key: string, registry: Registry): boolean {
  if (!key.startsWith("[") || !key.endsWith("]")) return false;
  return registry.getExtension(key.slice(1, -1))?.extendee.typeName === desc.typeName;
}

function isObject(json: unknown): json is Record<string, unknown> {
  return (
    typeof json === "object" && json !== null && !Array.isArray(json) && !(json instanceof UnsafeInteger)
  );
}

function join(at: string, name: string): string {
  return at === "" ? name : `${at}.${name}`;
}
