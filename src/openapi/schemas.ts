/** Creates JSON Schemas for messages in their proto3 JSON form. */
import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.ts";
import { whole_number } from "#gen/qsp/access_pb.ts";
import { allowNull } from "./absence.ts";
import { base64Schema, describeBytes } from "./base64.ts";
import type { Schema } from "./document.ts";
import { constrainField, sayMessageRules } from "./rules.ts";
import { type Describe, withSentences } from "./texts.ts";
import { wellKnownSchema } from "./well-known.ts";

/**
 * Where a value occurs: in a JSON request body, in a path or query ("text", which has no null), or in a
 * response. Rules apply to requests, and responses are complete.
 */
export type Direction = "request" | "text" | "response";

/** Creates schemas, and collects those that other schemas refer to. */
export interface Schemas {
  /**
   * Returns a reference to a message's schema, or the schema itself if the JSON form is not an object with
   * its fields.
   */
  ofMessage(desc: DescMessage, direction: Direction): Schema;
  ofField(field: DescField, direction: Direction): Schema;
  /**
   * Returns a reference to a request as a form: it has no null, and ignores unknown parameters
   * (src/transcoding/form.ts).
   */
  ofForm(desc: DescMessage): Schema;
  /** Returns a request without some of its fields, for bodies of calls that have these in their path. */
  ofRemainder(desc: DescMessage, without: readonly FieldParts[]): Schema;
  /** Returns whether a request without the field is refused. */
  isRequired(desc: DescMessage, field: DescField): boolean;
  /** Returns whether rules across several fields refuse an empty request. */
  isEmptyRefused(desc: DescMessage): boolean;
  /** All schemas that were referred to so far, by name. */
  readonly components: ReadonlyMap<string, Schema>;
}

/** A field of a message, or of a nested message. */
type FieldParts = readonly DescField[];

/**
 * Creates an empty collection of schemas.
 *
 * @param answered messages that the server sends. A message that clients also send gets a separate schema,
 *   "…Input".
 */
export function createSchemas(describe: Describe, answered: readonly DescMessage[]): Schemas {
  const components = new Map<string, Schema>();
  const fromServer = collectMessages(answered);
  // Third-party answers have other conventions. So do nested messages: a damaged record lacks most fields.
  const ownAnswers = new Set(answered.filter(({ field }) => field.status?.scalar === ScalarType.STRING));
  const findMissing = createFindMissing();
  const listRequired = (desc: DescMessage): readonly DescField[] => findMissing(desc).fields;

  const refer = (name: string, make: () => Schema): Schema => {
    if (!components.has(name)) {
      // Set before creation, because a message may be recursive.
      components.set(name, {});
      components.set(name, make());
    }
    return { $ref: `#/components/schemas/${name}` };
  };

  const ofMessage = (desc: DescMessage, direction: Direction): Schema => {
    const wellKnown = wellKnownSchema(desc);
    if (wellKnown !== undefined) return wellKnown;
    if (isWrapperDesc(desc)) return scalarSchema(desc.fields[0].scalar, direction);
    const suffix = direction !== "response" && fromServer.has(desc.typeName) ? "Input" : "";
    return refer(`${desc.typeName}${suffix}`, () =>
      objectSchema(desc, direction === "response" ? "response" : "request", []),
    );
  };

  const objectSchema = (desc: DescMessage, direction: Direction, without: readonly FieldParts[]): Schema => {
    const isRequest = direction !== "response";
    const isComplete = ownAnswers.has(desc) ? isDeclaredPresent : isAlwaysThere;
    const required = (isRequest ? listRequired(desc) : desc.fields.filter(isComplete))
      .filter((field) => without.every(([first]) => first !== field))
      .map(({ jsonName }) => jsonName);
    return {
      type: "object",
      description: withSentences(describe(desc), isRequest ? sayMessageRules(desc) : []),
      properties: describeFields(desc, direction, without),
      required: required.length > 0 ? required : undefined,
      // The server refuses unknown fields, but callers should expect new fields in responses.
      additionalProperties: isRequest ? false : undefined,
    };
  };

  const describeFields = (desc: DescMessage, direction: Direction, without: readonly FieldParts[]) =>
    Object.fromEntries(
      desc.fields.flatMap((field): [string, Schema][] => {
        const inside = without.filter(([first]) => first === field).map((path) => path.slice(1));
        if (inside.some(({ length }) => length === 0)) return [];
        const isPartial = inside.length > 0 && field.fieldKind === "message";
        const schema = isPartial ? objectSchema(field.message, direction, inside) : ofField(field, direction);
        return [[field.jsonName, schema]];
      }),
    );

  const ofField = (field: DescField, direction: Direction): Schema => {
    const plain = valueSchema(field, direction);
    if (direction === "response") {
      // src/server/interceptors/status.ts
      const isStatus = field.name === "status" && ownAnswers.has(field.parent);
      return withText(isStatus ? { ...plain, const: "success" } : plain, field, []);
    }
    const isNeeded = isRequired(field.parent, field);
    const { schema, sentences } = constrainField(field, plain, isNeeded);
    return withText(isNeeded || direction === "text" ? schema : allowNull(schema), field, sentences);
  };

  const withText = (schema: Schema, field: DescField, sentences: readonly string[]): Schema => ({
    ...schema,
    description: withSentences(describe(field), sentences),
    deprecated: field.deprecated || undefined,
  });

  const valueSchema = (field: DescField, direction: Direction): Schema => {
    const single = (): Schema => {
      if (field.message !== undefined) return ofMessage(field.message, direction);
      if (field.enum !== undefined) return enumSchema(field.enum);
      return getOption(field, whole_number) ? wholeNumberSchema : scalarSchema(field.scalar, direction);
    };
    if (field.fieldKind === "list") return { type: "array", items: single() };
    if (field.fieldKind === "map") return { type: "object", additionalProperties: single() };
    return single();
  };

  const isRequired = (desc: DescMessage, field: DescField): boolean => listRequired(desc).includes(field);

  return {
    ofMessage,
    ofField,
    ofForm: (desc) =>
      refer(`${desc.typeName}Form`, () => ({
        ...objectSchema(desc, "text", []),
        additionalProperties: undefined,
      })),
    ofRemainder: (desc, without) => objectSchema(desc, "request", without),
    isRequired,
    isEmptyRefused: (desc) => findMissing(desc).isWhole,
    components,
  };
}

/** What the validator reports missing in an empty message. */
interface Missing {
  /** Fields that are missing because of "required" or other rules. */
  readonly fields: readonly DescField[];
  /** Whether a rule across several fields refuses the message. */
  readonly isWhole: boolean;
}

function createFindMissing(): (desc: DescMessage) => Missing {
  const validator = createValidator();
  const known = new Map<DescMessage, Missing>();
  const findMissing = (desc: DescMessage): Missing => {
    const { violations = [] } = validator.validate(desc, create(desc));
    const missed = violations.map(({ field }) => (field.length === 1 ? field[0] : undefined));
    return {
      fields: desc.fields.filter((field) => missed.includes(field) || isDeclaredRequired(field)),
      isWhole: violations.some(({ field }) => field.length === 0),
    };
  };
  return (desc) => known.getOrInsertComputed(desc, findMissing);
}

/** Google's protos have no validation rules. */
function isDeclaredRequired(field: DescField): boolean {
  return getOption(field, field_behavior).includes(FieldBehavior.REQUIRED);
}

/**
 * Whether a field is in every response: a field without presence is included even if it is zero
 * (src/transcoding/rendering.ts).
 */
export function isAlwaysThere(field: DescField): boolean {
  return field.presence === FeatureSet_FieldPresence.IMPLICIT;
}

/** In answers of our own calls, messages too are always present, unless they are `optional` or in a oneof. */
function isDeclaredPresent(field: DescField): boolean {
  const isMessage = field.fieldKind === "message" && field.oneof === undefined;
  return isAlwaysThere(field) || (isMessage && !field.proto.proto3Optional);
}

/** Collects the names of messages and of all messages in their fields. */
function collectMessages(roots: readonly DescMessage[]): Set<string> {
  const names = new Set<string>();
  const visit = (desc: DescMessage): void => {
    if (names.has(desc.typeName)) return;
    names.add(desc.typeName);
    for (const { message } of desc.fields) if (message !== undefined) visit(message);
  };
  roots.forEach(visit);
  return names;
}

function enumSchema(desc: DescEnum): Schema {
  if (desc.typeName === "google.protobuf.NullValue") return { type: "null" };
  return { type: "string", enum: desc.values.map(({ name }) => name) };
}

/** A double that holds whole numbers (proto/qsp/access.proto). */
const wholeNumberSchema: Schema = {
  type: "integer",
  format: "int64",
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
};

const int32: Schema = { type: "integer", format: "int32", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
/** Generators have no unsigned 32-bit type; a 64-bit type holds all values. */
const uint32: Schema = { type: "integer", format: "int64", minimum: 0, maximum: 2 ** 32 - 1 };
const int64: Schema = { type: "string", format: "int64" };
const uint64: Schema = { type: "string", format: "uint64" };

/** JSON forms of scalars (protobuf.dev/programming-guides/json). */
const scalarSchemas: Readonly<Record<ScalarType, Schema>> = {
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BYTES]: base64Schema,
  [ScalarType.DOUBLE]: { type: "number", format: "double" },
  [ScalarType.FLOAT]: { type: "number", format: "float" },
  [ScalarType.INT32]: int32,
  [ScalarType.SINT32]: int32,
  [ScalarType.SFIXED32]: int32,
  [ScalarType.UINT32]: uint32,
  [ScalarType.FIXED32]: uint32,
  [ScalarType.INT64]: int64,
  [ScalarType.SINT64]: int64,
  [ScalarType.SFIXED64]: int64,
  [ScalarType.UINT64]: uint64,
  [ScalarType.FIXED64]: uint64,
};

function scalarSchema(scalar: ScalarType, direction: Direction): Schema {
  if (scalar !== ScalarType.BYTES || direction === "response") return scalarSchemas[scalar];
  return describeBytes({ minBytes: 0, maxBytes: undefined, mayBeEmpty: true });
}
