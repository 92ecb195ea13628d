/** Describes the request fields in the path and the query. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { Json } from "../calls/example.ts";
import { describeFieldPath, type FieldPath, findLeaf, whyNotTextual } from "../transcoding/fields.ts";
import type { Route } from "../transcoding/routes.ts";
import type { Parameter, Schema } from "./document.ts";
import type { ApiPath, PathParameter } from "./paths.ts";
import type { Schemas } from "./schemas.ts";
import { withSentences } from "./texts.ts";

export function describePathParameters(
  path: ApiPath,
  schemas: Schemas,
  example: Json | undefined,
): Parameter[] {
  return path.parameters.map((parameter): Parameter => {
    const { name, field, partOf, isRest } = parameter;
    const { description, deprecated, ...schema } = describeParameter(parameter, schemas);
    const sentences = [
      ...(partOf === undefined ? [] : [`the value of the field is \`${partOf}\``]),
      ...(isRest ? ["may have several segments, between slashes or %2F"] : []),
    ];
    const whole = field && valueAt(example, field);
    const value = partOf === undefined ? whole : takePart(whole, partOf, name);
    return {
      name,
      in: "path",
      required: true,
      description: withSentences(description, sentences),
      deprecated,
      schema,
      example: value,
    };
  });
}

/**
 * Returns the part of an example that a parameter stands for: "p" of "projects/p/keys/k" in the pattern
 * "projects/{name1}/keys/{name2}".
 */
function takePart(whole: Json | undefined, pattern: string, name: string): Json | undefined {
  if (typeof whole !== "string") return undefined;
  const [texts, parts] = [whole.split("/"), pattern.split("/")];
  // The example belongs to a different binding of the RPC.
  const isOther = parts.some((part, index) => !part.startsWith("{") && part !== texts[index]);
  return isOther || texts.length !== parts.length ? undefined : texts[parts.indexOf(`{${name}}`)];
}

function describeParameter({ field, partOf, isRest }: PathParameter, schemas: Schemas): Schema {
  const whole: Schema = field === undefined ? { type: "string" } : schemas.ofField(findLeaf(field), "text");
  const plain: Schema = { type: "string", description: whole.description, deprecated: whole.deprecated };
  if (partOf === undefined && !isRest && field !== undefined) return whole;
  return isRest ? plain : { ...plain, minLength: 1 };
}

/** Describes every field that the query of a route accepts. */
export function describeQueryParameters(
  route: Route,
  schemas: Schemas,
  example: Json | undefined,
): Parameter[] {
  if (route.body.kind === "all") return [];
  const taken: FieldPath[] = route.variables.map(({ path }) => path);
  if (route.body.kind === "field") taken.push([route.body.field]);
  const { input } = route.spec.method;
  return listQueryFields(input, [], [])
    .filter((path) => !taken.some((other) => excludes(other, path)))
    .map((path) => describeQueryParameter(path, input, schemas, valueAt(example, path)));
}

/**
 * Whether a value in one field rules out another: it is the same field, a field above it, or a member of the
 * same oneof.
 */
function excludes(taken: FieldPath, path: FieldPath): boolean {
  for (const [i, field] of taken.entries()) {
    if (path[i] === field) continue;
    return field.oneof !== undefined && field.oneof === path[i]?.oneof;
  }
  return true;
}

function describeQueryParameter(
  path: FieldPath,
  input: DescMessage,
  schemas: Schemas,
  example: Json | undefined,
): Parameter {
  const { description, deprecated, ...schema } = schemas.ofField(findLeaf(path), "text");
  const isRequired = path.length === 1 && schemas.isRequired(input, path[0]);
  const common = {
    name: describeFieldPath(path),
    in: "query",
    required: isRequired,
    description,
    deprecated,
  } as const;
  // The text of these types is JSON itself.
  const isJson = /^google\.protobuf\.(Struct|Value|ListValue)$/.test(findLeaf(path).message?.typeName ?? "");
  return isJson
    ? { ...common, content: { "application/json": { schema, example } } }
    : { ...common, schema, example };
}

/** Lists every field, including nested ones, that has a textual form. */
function listQueryFields(
  desc: DescMessage,
  above: readonly DescField[],
  seen: readonly DescMessage[],
): FieldPath[] {
  if (seen.includes(desc)) return [];
  return desc.fields.flatMap((field): FieldPath[] => {
    const [first = field, ...others] = [...above, field];
    if (whyNotTextual(field, "query") === undefined) return [[first, ...others]];
    if (field.fieldKind !== "message" || field.message.typeName === "google.protobuf.Any") return [];
    return listQueryFields(field.message, [...above, field], [...seen, desc]);
  });
}

/** Returns the value at a path in a message's JSON form. */
export function valueAt(message: Json | undefined, path: FieldPath): Json | undefined {
  let value: unknown = message;
  for (const { jsonName } of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[jsonName];
  }
  return value as Json | undefined;
}
