/** Puts a request message together from path, query and body. */
import type { DescField, Message, Registry } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { refuse, refuseField } from "../errors.ts";
import { type BodyLimits, type IncomingBody, readBody, requireMediaType, withinTime } from "./body.ts";
import {
  describeFieldPath,
  type FieldPath,
  FieldValueError,
  leafOf,
  readFieldValue,
  setField,
} from "./fields.ts";
import { decodeJsonText, parseJsonMessage, parseJsonValue } from "./json.ts";
import { readLines, splitJsonArray } from "./json-stream.ts";
import { readQuery, refuseQuery } from "./query.ts";
import type { RouteMatch } from "./router.ts";
import { isHttpBody, type Route } from "./routes.ts";

const jsonType = "application/json";
const lineTypes = ["application/x-ndjson", "application/ndjson", "application/jsonl"];

/** A value that path or query gives to a field. */
interface FieldValue {
  readonly path: FieldPath;
  readonly value: Message;
  readonly source: "path" | "query";
}

/**
 * Makes the request messages of a call: one, or for a client stream as many as the body holds.
 *
 * The path goes before the body and the body before the query, and where two of them give a field different
 * values the request is refused: what one layer checked must be what the next one uses.
 */
export async function* readRequestMessages(
  match: RouteMatch<Route>,
  rawQuery: string,
  body: IncomingBody | undefined,
  limits: BodyLimits,
  registry: Registry,
): AsyncGenerator<Message> {
  const { route } = match;
  const values = readFieldValues(match, rawQuery, registry);
  const streams = route.spec.kind === "client_streaming" || route.spec.kind === "bidi_streaming";
  const messages = streams
    ? readBodyMessages(route, body, limits, registry)
    : [await readBodyMessage(route, body, limits, registry)];
  for await (const message of messages) {
    for (const value of values) applyValue(route, message, value);
    yield message;
  }
}

function readFieldValues(match: RouteMatch<Route>, rawQuery: string, registry: Registry): FieldValue[] {
  const { route, variables } = match;
  const fromPath = route.variables.map(({ variable, path }) => ({
    path,
    texts: [variables.get(variable) ?? ""],
  }));
  if (route.body.kind === "all") refuseQuery(rawQuery);
  const fromQuery = route.body.kind === "all" ? [] : readQuery(route.spec.method.input, rawQuery);
  const read = (source: "path" | "query", { path, texts }: { path: FieldPath; texts: readonly string[] }) => {
    try {
      return { path, source, value: readFieldValue(leafOf(path), texts, registry) };
    } catch (error) {
      if (!(error instanceof FieldValueError)) throw error;
      throw refuseField(describeFieldPath(path), error.message);
    }
  };
  return [...fromPath.map((field) => read("path", field)), ...fromQuery.map((field) => read("query", field))];
}

function applyValue(route: Route, message: Message, { path, value, source }: FieldValue): void {
  const result = setField(reflect(route.spec.method.input, message), path, value);
  if (result === "set") return;
  const field = describeFieldPath(path);
  const description =
    result === "contradicts"
      ? `has one value in the ${source} and another elsewhere in the request`
      : `stands in the ${source}, but ${result.oneofTakenBy.jsonName} is set, and only one of them may be`;
  throw refuse("FIELD_CONTRADICTION", `${field}: ${description}`, { field }, [{ field, description }]);
}

async function readBodyMessage(
  route: Route,
  body: IncomingBody | undefined,
  limits: BodyLimits,
  registry: Registry,
): Promise<Message> {
  const { input } = route.spec.method;
  if (body === undefined) return create(input);
  if (route.body.kind === "none") {
    await refuseContent(body, limits);
    return create(input);
  }
  if (takesRawBody(route)) return rawMessage(route, body.headers, await readBody(body, limits));
  requireMediaType(body.headers, [jsonType]);
  const bytes = await readBody(body, limits);
  return bytes.length === 0 ? create(input) : parseBodyMessage(route, decodeJsonText(bytes), registry);
}

/** @throws BODY_UNEXPECTED for a body that would be ignored: what it says must not be lost in silence. */
async function refuseContent(body: IncomingBody, limits: BodyLimits): Promise<void> {
  for await (const chunk of withinTime(body, limits.maxReceiveMs)) {
    if (chunk.length > 0)
      throw refuse("BODY_UNEXPECTED", "this call takes no body; put its fields into path and query");
  }
}

function takesRawBody(route: Route): boolean {
  if (route.body.kind === "all") return isHttpBody(route.spec.method.input);
  return (
    route.body.kind === "field" &&
    route.body.field.fieldKind === "message" &&
    isHttpBody(route.body.field.message)
  );
}

/** Makes a request of raw bytes: the input is a google.api.HttpBody, or has one as its body field. */
function rawMessage(route: Route, headers: Headers, data: Uint8Array): Message {
  const { input } = route.spec.method;
  const contentType = headers.get("content-type") ?? "application/octet-stream";
  const message = reflect(input, create(input));
  const target = route.body.kind === "field" ? reflectChild(message, route.body.field) : message;
  for (const field of target.fields) {
    if (field.name === "content_type") target.set(field, contentType);
    if (field.name === "data") target.set(field, data);
  }
  if (route.body.kind === "field") message.set(route.body.field, target);
  return message.message;
}

function reflectChild(message: ReturnType<typeof reflect>, field: DescField): ReturnType<typeof reflect> {
  return message.get(field) as ReturnType<typeof reflect>;
}

function parseBodyMessage(route: Route, text: string, registry: Registry): Message {
  const { input } = route.spec.method;
  if (route.body.kind !== "field") return parseJsonMessage(input, text, registry);
  // The text is checked to be one JSON value before it stands inside another: it can not break out.
  parseJsonValue(text);
  return parseJsonMessage(input, `{${JSON.stringify(route.body.field.jsonName)}:${text}}`, registry);
}

/** Reads the messages of a client stream: JSON lines, one JSON array, or the chunks of a raw body. */
async function* readBodyMessages(
  route: Route,
  body: IncomingBody | undefined,
  limits: BodyLimits,
  registry: Registry,
): AsyncGenerator<Message> {
  if (body === undefined) return;
  if (route.body.kind === "none") return refuseContent(body, limits);
  if (takesRawBody(route)) {
    for await (const chunk of withinTime(body)) yield rawMessage(route, body.headers, chunk);
    return;
  }
  const type = requireMediaType(body.headers, [jsonType, ...lineTypes]);
  const texts =
    type === jsonType ? splitJsonArray(await readBody(body, limits)) : readLines(body, limits.maxBytes);
  for await (const text of texts) yield parseBodyMessage(route, text, registry);
}
