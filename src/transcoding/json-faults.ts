/** Finds the first place in a JSON value that does not match its message type. */
import type { DescField, DescMessage, Registry } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { findSizeRules, whyTooLong, whyTooMany } from "../message-limits/size-rules.ts";
import { maxMessageDepth } from "../message-limits/structure-limits.ts";
import { findNearest } from "../suggest.ts";
import { createKeyCheck, whyNotElement, whyNotEntry, whyNotField, whyNotMessage } from "./json-values.ts";
import { UnsafeInteger } from "./strict-values.ts";

/** A place, in JSON names ("nested.items[2].count"), and what is wrong there. */
export interface Fault {
  readonly field: string;
  readonly reason: string;
}

/** At least one fault: several only for the unknown fields of one object. */
type Faults = readonly [Fault, ...Fault[]];

/** Maximum number of unknown fields in an error. */
const maxUnknownFields = 10;
/** Longer names get no hint, so that the search stays short. */
const maxNameCharacters = 64;

/**
 * Checks every value once, in text order, and stops at the first fault: unknown or duplicate fields, values
 * of the wrong type or outside ProtoJSON, integers that lost digits, and lists that exceed their rules.
 *
 * The server builds a message only after this check, and only once.
 *
 * @returns undefined if every field is valid, or if the whole value is not an object
 */
export function findFaults(desc: DescMessage, json: unknown, registry: Registry): Faults | undefined {
  return hasCustomJsonRepresentation(desc)
    ? undefined
    : faultOfFields(desc, json, { at: "", depth: 1, registry });
}

/** The place of a value, and the nesting depth of the message that it is or is in. */
interface Place {
  readonly at: string;
  readonly depth: number;
  readonly registry: Registry;
}

function deeper({ at, depth, registry }: Place, place = at): Place {
  return { at: place, depth: depth + 1, registry };
}

function faultAt(field: string, reason: string | undefined): Faults | undefined {
  return reason === undefined ? undefined : [{ field, reason }];
}

function faultOfMessage(desc: DescMessage, json: unknown, place: Place): Faults | undefined {
  if (desc.typeName === "google.protobuf.Any" && isObject(json)) return faultOfAny(json, place);
  if (!hasCustomJsonRepresentation(desc) && isObject(json)) return faultOfFields(desc, json, place);
  return faultAt(place.at, whyNotMessage(desc, json, place.registry));
}

function faultOfFields(desc: DescMessage, json: unknown, place: Place): Faults | undefined {
  const { at, depth, registry } = place;
  if (depth > maxMessageDepth) return faultAt(at, `is nested more than ${maxMessageDepth} levels deep`);
  if (!isObject(json)) return undefined;
  const fields = indexFields(desc);
  const seen = new Set<DescField>();
  const oneofs = new Map<DescField["oneof"], DescField>();
  for (const key of Object.keys(json)) {
    const field = fields.get(key);
    if (field === undefined) {
      if (isExtension(desc, key, registry)) continue;
      return faultsOfUnknown(desc, json, place, key);
    }
    const name = join(at, field.jsonName);
    if (seen.has(field)) return faultAt(name, "occurs more than once");
    seen.add(field);
    const value = json[key];
    // ProtoJSON: null leaves a scalar in a oneof unset.
    if (field.oneof !== undefined && !(value === null && field.fieldKind === "scalar")) {
      const other = oneofs.get(field.oneof);
      if (other !== undefined) {
        const reason = `only one of ${other.jsonName} and ${field.jsonName} may be set`;
        return faultAt(join(at, field.oneof.name), reason);
      }
      oneofs.set(field.oneof, field);
    }
    const fault = faultOfField(field, value, { at: name, depth, registry });
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Reports the unknown fields of an object, the first of which is `first`. */
function faultsOfUnknown(desc: DescMessage, json: object, { at, registry }: Place, first: string): Faults {
  const fields = indexFields(desc);
  const names = desc.fields.map(({ jsonName }) => jsonName);
  const describe = (key: string): Fault => {
    const nearest = key.length > maxNameCharacters ? undefined : findNearest(key, names);
    const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
    return { field: join(at, key), reason: `the field does not exist${hint}` };
  };
  const others = Object.keys(json)
    .filter((key) => key !== first && !fields.has(key) && !isExtension(desc, key, registry))
    .slice(0, maxUnknownFields - 1);
  return [describe(first), ...others.map(describe)];
}

/** An Any names its type in "@type". A type with its own JSON form is in "value". */
function faultOfAny(json: Readonly<Record<string, unknown>>, place: Place): Faults | undefined {
  const { "@type": typeUrl, ...content } = json;
  if (typeUrl === undefined && Object.keys(content).length === 0) return undefined;
  const desc = place.registry.getMessage(String(typeUrl).replace(/^.*\//, ""));
  if (desc === undefined) return faultAt(place.at, `"@type" names an unknown type`);
  return hasCustomJsonRepresentation(desc)
    ? faultOfMessage(desc, content.value, deeper(place, join(place.at, "value")))
    : faultOfFields(desc, content, deeper(place));
}

function faultOfField(field: DescField, json: unknown, place: Place): Faults | undefined {
  if (field.fieldKind === "list" && Array.isArray(json)) return faultOfList(field, json, place);
  if (field.fieldKind === "map" && isObject(json)) return faultOfMap(field, json, place);
  if (field.fieldKind === "message" && json !== null)
    return faultOfMessage(field.message, json, deeper(place));
  const reason = whyNotField(field, json, place.registry);
  if (reason !== undefined) return faultAt(place.at, isSecret(field) ? hideValue(reason) : reason);
  // A character has at most two UTF-16 code units. The validator counts exactly, but is slow for a long text.
  const isTooLong = typeof json === "string" && json.length > 2 * findSizeRules(field).maxCharacters;
  return isTooLong ? faultAt(place.at, whyTooLong(field)) : undefined;
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
  place: Place,
): Faults | undefined {
  if (items.length > findSizeRules(field).maxItems) return faultAt(place.at, whyTooMany(field));
  for (const [index, json] of items.entries()) {
    const at = `${place.at}[${index}]`;
    const fault =
      field.listKind === "message" && json !== null
        ? faultOfMessage(field.message, json, deeper(place, at))
        : faultAt(at, whyNotElement(field, json, place.registry));
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function faultOfMap(
  field: DescField & { fieldKind: "map" },
  entries: Record<string, unknown>,
  place: Place,
): Faults | undefined {
  const keys = Object.keys(entries);
  if (keys.length > findSizeRules(field).maxItems) return faultAt(place.at, whyTooMany(field));
  const isNewKey = createKeyCheck(field);
  for (const key of keys) {
    if (!isNewKey(key)) return faultAt(place.at, `duplicate map key ${JSON.stringify(key)}`);
    const json = entries[key];
    const at = `${place.at}[${JSON.stringify(key)}]`;
    const reason = whyNotEntry(field, key, json, place.registry);
    if (reason !== undefined) return faultAt(json === null ? place.at : at, reason);
    if (field.mapKind !== "message") continue;
    const fault = faultOfMessage(field.message, json, deeper(place, at));
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
