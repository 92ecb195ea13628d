/** Explains why a JSON value does not match a field, in the words of protobuf-es. */
import type { DescEnum, DescField, DescMessage, JsonValue, Registry } from "@bufbuild/protobuf";
import { fromJson, ScalarType } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { excerpt } from "../errors/shorten.ts";
import { explainJsonError } from "./fields.ts";
import {
  isBase64,
  roundInteger,
  whyNotInteger,
  whyNotStrictMessage,
  whyNotStrictScalar,
} from "./strict-values.ts";

/** Explains why a value is not valid for a whole field; undefined if it is. */
export function whyNotField(field: DescField, json: unknown, registry: Registry): string | undefined {
  if (json === null || isPlain(field, json)) return undefined;
  return (
    (field.fieldKind === "scalar" ? whyNotScalar(field, json) : undefined) ??
    whyNotRead(field, roundInteger(json), json, registry) ??
    whyNotStrict(field, json)
  );
}

/** Explains why a value is not a valid list element. */
export function whyNotElement(field: DescField, json: unknown, registry: Registry): string | undefined {
  if (isPlainElement(field, json)) return undefined;
  const reason = whyNotScalar(field, json) ?? whyNotRead(field, [roundInteger(json)], json, registry);
  return reason?.replace("list item #1: ", "") ?? whyNotStrict(field, json);
}

/**
 * Explains why a key and a value are not a valid map entry. If the value is a message, checks only the key.
 */
export function whyNotEntry(
  field: DescField & { fieldKind: "map" },
  key: string,
  json: unknown,
  registry: Registry,
): string | undefined {
  const isMessage = field.mapKind === "message" && json !== null;
  if (isPlainKey(field.mapKey, key) && (isMessage || isPlainElement(field, json))) return undefined;
  // Messages are read separately; here they would be read once for each map that contains them.
  const value = isMessage && !hasCustomJsonRepresentation(field.message) ? {} : roundInteger(json);
  return (
    whyNotScalar(field, json) ??
    whyNotRead(field, { [key]: value }, json, registry) ??
    whyNotStrict(field, json)
  );
}

/** Explains why a value is not a valid message of a type with its own JSON form, or not an object. */
export function whyNotMessage(desc: DescMessage, json: unknown, registry: Registry): string | undefined {
  const reason =
    (typeof json === "string" ? whyNotStrictMessage(desc, json) : undefined) ??
    (isWrapperDesc(desc) ? whyNotScalar(desc.fields[0], json) : undefined) ??
    explainFailure(() => fromJson(desc, roundInteger(json) as JsonValue, { registry }));
  return reason ?? (isWrapperDesc(desc) ? whyNotStrict(desc.fields[0], json) : undefined);
}

/** Creates the check whether a map key is new: "01" and "1" are the same number. */
export function createKeyCheck({ mapKey }: DescField & { fieldKind: "map" }): (key: string) => boolean {
  if (mapKey === ScalarType.STRING || mapKey === ScalarType.BOOL) return () => true;
  const seen = new Set<string>();
  return (key) => {
    const size = seen.size;
    seen.add(/^-?\d{1,20}$/.test(key) ? String(BigInt(key)) : String(Number(key)));
    return seen.size > size;
  };
}

/** Finds values that protobuf-es accepts but ProtoJSON does not. */
function whyNotStrict({ scalar }: DescField, json: unknown): string | undefined {
  return scalar !== undefined && typeof json === "string" ? whyNotStrictScalar(scalar, json) : undefined;
}

/**
 * Checks base64 first, because protobuf-es takes long to find an error in it, and numbers, because its error shows
 * their rounded digits.
 */
function whyNotScalar({ scalar }: DescField, json: unknown): string | undefined {
  if (scalar === undefined) return undefined;
  if (typeof json !== "string") return whyNotInteger(scalar, json);
  return scalar === ScalarType.BYTES ? whyNotStrictScalar(scalar, json) : undefined;
}

/**
 * Reads a single field.
 *
 * @param value the value that the error shows
 */
function whyNotRead(field: DescField, json: unknown, value: unknown, registry: Registry): string | undefined {
  const reason = explainFailure(() =>
    fromJson(field.parent, { [field.jsonName]: json as JsonValue }, { registry }),
  );
  const isElement = field.fieldKind !== "list" || Array.isArray(json);
  if (reason === undefined || field.enum === undefined || !isElement || value === null) return reason;
  const names = field.enum.values.map(({ name }) => name).join(", ");
  return `expected one of ${names}, got ${excerpt(JSON.stringify(value))}`;
}

function explainFailure(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    return explainJsonError(error);
  }
}

/** Accepts most valid values quickly. whyNotRead checks the others. */
function isPlain(field: DescField, json: unknown): boolean {
  return (field.fieldKind === "scalar" || field.fieldKind === "enum") && isPlainElement(field, json);
}

function isPlainElement({ scalar, enum: desc }: DescField, json: unknown): boolean {
  if (desc !== undefined) return typeof json === "string" && listNames(desc).has(json);
  switch (scalar) {
    case undefined:
      return false;
    case ScalarType.STRING:
      return typeof json === "string" && json.isWellFormed();
    case ScalarType.BOOL:
      return typeof json === "boolean";
    case ScalarType.BYTES:
      return typeof json === "string" && isBase64(json);
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return typeof json === "number" && Math.abs(json) < 3e38;
    default:
      return isPlainInteger(json);
  }
}

/** Accepts integers that fit into every integer type. */
function isPlainInteger(json: unknown): boolean {
  if (typeof json === "string") return /^\d{1,9}$/.test(json);
  return Number.isInteger(json) && (json as number) >= 0 && (json as number) < 2 ** 31;
}

function isPlainKey(mapKey: ScalarType, key: string): boolean {
  if (mapKey === ScalarType.STRING) return key.isWellFormed();
  return mapKey !== ScalarType.BOOL && isPlainInteger(key);
}

const knownNames = new WeakMap<DescEnum, ReadonlySet<string>>();

function listNames(desc: DescEnum): ReadonlySet<string> {
  return knownNames.getOrInsertComputed(desc, ({ values }) => new Set(values.map(({ name }) => name)));
}
