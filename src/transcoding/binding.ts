/** Builds a request message from path, query and body. */
import type { DescField, Message, Registry } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { refuse } from "../errors.ts";
import type { IncomingBody, StreamLimits } from "./body.ts";
import { readBodyMessage, readBodyMessages } from "./body-messages.ts";
import {
  type BodyMessage,
  describeFieldPath,
  type FieldPath,
  findLeaf,
  readFieldValue,
  setField,
} from "./fields.ts";
import { readQuery, requireNoQuery } from "./query.ts";
import type { RouteMatch } from "./router.ts";
import type { Route } from "./routes.ts";

/** A field value from the path or the query. */
export interface FieldValue {
  readonly path: FieldPath;
  readonly value: Message;
  readonly source: "path" | "query";
}

/** Builds the request messages of a stream: one, or for a client stream all messages in the body. */
export async function* readRequestMessages(
  match: RouteMatch<Route>,
  rawQuery: string,
  body: IncomingBody | undefined,
  limits: StreamLimits,
): AsyncGenerator<Message> {
  const values = readFieldValues(match, rawQuery, limits.registry);
  if (match.route.spec.kind === "server_streaming") {
    yield applyValues(match.route, values, await readBodyMessage(match.route, body, limits));
    return;
  }
  for await (const message of readBodyMessages(match.route, body, limits))
    yield applyValues(match.route, values, message);
}

/**
 * Completes the message of a body with values from the path and the query.
 *
 * A field may be in the path, the body and the query. Conflicting values are refused: the value that one
 * layer checks must be the value that the next layer uses.
 */
export function applyValues(
  route: Route,
  values: readonly FieldValue[],
  { message, has }: BodyMessage,
): Message {
  for (const { path, source } of values)
    if (source === "query" && !has(path)) requireOutsideBody(route, path);
  const given = new Set<string>();
  for (const value of values) {
    const field = describeFieldPath(value.path);
    applyValue(route, message, value, given.has(field) || has(value.path));
    given.add(field);
  }
  return message;
}

/** Reads the fields of a path and a query. */
export function readFieldValues(
  match: RouteMatch<Route>,
  rawQuery: string,
  registry: Registry,
): FieldValue[] {
  const { route, variables } = match;
  const fromPath = route.variables.map(({ variable, path }) => ({
    path,
    texts: [variables.get(variable) ?? ""],
  }));
  if (route.body.kind === "all") requireNoQuery(rawQuery);
  const fromQuery = route.body.kind === "all" ? [] : readQuery(route.spec.method.input, rawQuery);
  for (const { path } of fromQuery) if (path.length > 1) requireOutsideBody(route, path);
  const read = (source: "path" | "query", { path, texts }: { path: FieldPath; texts: readonly string[] }) => {
    const given = route.style === "google" ? texts.map((text) => toJsonMask(findLeaf(path), text)) : texts;
    return { path, source, value: readFieldValue(path, given, registry) };
  };
  return [...fromPath.map((field) => read("path", field)), ...fromQuery.map((field) => read("query", field))];
}

/**
 * In ProtoJSON, field mask paths are in lowerCamelCase. Google's Node client sends proto names, and Google's
 * services accept both.
 */
function toJsonMask({ message }: DescField, text: string): string {
  if (message?.typeName !== "google.protobuf.FieldMask") return text;
  return text.replaceAll(/(?<=[a-z0-9])_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}

/** google/api/http.proto: fields that are neither in the path nor in the body can be query parameters. */
function requireOutsideBody({ body }: Route, path: FieldPath): void {
  if (body.kind !== "field" || body.field !== path[0]) return;
  const field = describeFieldPath(path);
  const description = `is in the query, but this call takes ${body.field.jsonName} as its body; move it there`;
  throw refuse("FIELD_CONTRADICTION", `${field}: ${description}`, { field }, [{ field, description }]);
}

function applyValue(
  route: Route,
  message: Message,
  { path, value, source }: FieldValue,
  isGiven: boolean,
): void {
  const result = setField(reflect(route.spec.method.input, message), path, value, isGiven);
  if (result === "set") return;
  const field = describeFieldPath(path);
  const description =
    result === "contradicts"
      ? `has one value in the ${source} and a different one elsewhere in the request`
      : `is in the ${source}, but ${result.oneofTakenBy.jsonName} is also set; set only one of them`;
  throw refuse("FIELD_CONTRADICTION", `${field}: ${description}`, { field }, [{ field, description }]);
}
