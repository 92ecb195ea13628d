/** Builds request messages from bodies: JSON, part of a message as JSON, raw bytes, or a stream of these. */
import { create } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { refuse } from "../errors.ts";
import { createExpansionBudget } from "../message-limits/expansion.ts";
import type { MessageLimits } from "../message-limits/structure-limits.ts";
import {
  type BodyLimits,
  type IncomingBody,
  readBody,
  readChunks,
  requireMediaType,
  type StreamLimits,
  withinTime,
} from "./body.ts";
import type { BodyMessage, FieldPath } from "./fields.ts";
import { parseForm } from "./form.ts";
import { parseJsonMessage } from "./json.ts";
import { readLines, splitJsonArray } from "./json-stream.ts";
import { isHttpBody, type Route } from "./routes.ts";

const jsonType = "application/json";
const formType = "application/x-www-form-urlencoded";
const lineTypes = ["application/x-ndjson", "application/ndjson", "application/jsonl"];

/** The media type of a raw body, which can be any type. */
export const anyType = "*/*";

/** The media types that the body of a call may have. The first applies to a body without a content-type. */
export function listMediaTypes(route: Route): readonly string[] {
  if (takesRawBody(route)) return [anyType];
  if (takesForm(route)) return [formType, jsonType];
  return isClientStream(route) ? [jsonType, ...lineTypes] : [jsonType];
}

function isClientStream({ spec }: Route): boolean {
  return spec.kind === "client_streaming" || spec.kind === "bidi_streaming";
}

/** Reads the only request message of a server stream. */
export async function readBodyMessage(
  route: Route,
  body: IncomingBody | undefined,
  limits: StreamLimits,
): Promise<BodyMessage> {
  if (body === undefined) return emptyMessage(route);
  if (route.body.kind === "none") {
    await requireNoContent(body, limits);
    return emptyMessage(route);
  }
  if (!takesRawBody(route)) requireMediaType(body.headers, listMediaTypes(route));
  return parseBody(route, body.headers, await readBody(body, limits), limits);
}

/**
 * Builds a message from a whole body; an empty message if there is none.
 *
 * @throws JSON_INVALID, also for a PATCH without changes
 */
export function parseBody(
  route: Route,
  headers: Headers,
  bytes: Uint8Array | undefined,
  limits: MessageLimits,
): BodyMessage {
  if (route.body.kind === "none") return emptyMessage(route);
  if (bytes === undefined) return requireChange(route, emptyMessage(route));
  if (takesRawBody(route)) return rawMessage(route, headers, bytes);
  if (requireMediaType(headers, listMediaTypes(route)) === formType)
    return parseForm(route.spec.method.input, bytes, limits);
  const isEmpty = bytes.length === 0 || (route.style === "google" && isEmptyString(bytes));
  return requireChange(route, isEmpty ? emptyMessage(route) : parseBodyMessage(route, bytes, limits));
}

/** RFC 5789, section 2: the body of PATCH is the change. Without it, an update mask would clear its fields. */
function requireChange({ httpMethod, body }: Route, message: BodyMessage): BodyMessage {
  if (httpMethod === "PATCH" && body.kind === "field" && !message.has([body.field]))
    throw refuse("JSON_INVALID", "the body is empty or null; send a JSON object with the changes");
  return message;
}

/**
 * Google's Node client sends the JSON text `""` as the body of a request without fields, such as
 * CreateKeyRing.
 */
function isEmptyString(bytes: Uint8Array): boolean {
  return bytes.length === 2 && bytes[0] === 0x22 && bytes[1] === 0x22;
}

/** @throws BODY_UNEXPECTED */
async function requireNoContent(body: IncomingBody, limits: BodyLimits): Promise<void> {
  for await (const chunk of withinTime(body, limits.maxReceiveMs)) {
    if (chunk.length > 0) throw bodyUnexpected();
  }
}

/** Refuses a body that would be ignored, because its contents must not be lost silently. */
export function bodyUnexpected(): Error {
  return refuse("BODY_UNEXPECTED", "this call takes no body; send its fields in the path and the query");
}

/** RFC 6749, appendix B: OAuth 2 clients send forms. */
function takesForm({ style, body }: Route): boolean {
  return style === "oauth" && body.kind === "all";
}

/** Returns whether the body is raw bytes (google.api.HttpBody) of any media type. */
export function takesRawBody(route: Route): boolean {
  if (route.body.kind === "all") return isHttpBody(route.spec.method.input);
  return (
    route.body.kind === "field" &&
    route.body.field.fieldKind === "message" &&
    isHttpBody(route.body.field.message)
  );
}

/**
 * Builds a request from raw bytes: the input is a google.api.HttpBody or has one as its body field.
 *
 * @throws BODY_INCOMPLETE
 */
function rawMessage(route: Route, headers: Headers, data: Uint8Array): BodyMessage {
  // RFC 9110, section 14.5: a part of a file must not replace the whole.
  if (headers.has("content-range"))
    throw refuse(
      "BODY_INCOMPLETE",
      "with content-range, the body is only a part; send the whole content, without content-range",
    );
  const { input } = route.spec.method;
  const contentType = headers.get("content-type") ?? "application/octet-stream";
  const message = reflect(input, create(input));
  const bodyField = route.body.kind === "field" ? route.body.field : undefined;
  const target = bodyField === undefined ? message : (message.get(bodyField) as ReflectMessage);
  for (const field of target.fields) {
    if (field.name === "content_type") target.set(field, contentType);
    if (field.name === "data") target.set(field, data);
  }
  if (bodyField !== undefined) message.set(bodyField, target);
  return { message: message.message, has: (path) => bodyField === undefined || path[0] === bodyField };
}

function emptyMessage(route: Route): BodyMessage {
  return { message: create(route.spec.method.input), has: () => false };
}

function parseBodyMessage(route: Route, bytes: Uint8Array, limits: MessageLimits): BodyMessage {
  const field = route.body.kind === "field" ? route.body.field : undefined;
  const { message, json } = parseJsonMessage(route.spec.method.input, bytes, limits, field);
  return { message, has: (path) => hasJsonField(json, path) };
}

/** Returns whether a JSON value sets a field. Null leaves it unset. */
function hasJsonField(json: unknown, path: FieldPath): boolean {
  let value = json;
  for (const { jsonName, name } of path) {
    if (typeof value !== "object" || value === null) return false;
    const members = value as Readonly<Record<string, unknown>>;
    value = members[jsonName] ?? members[name];
  }
  return value !== undefined && value !== null;
}

/** Reads the messages of a client stream: JSON lines, one JSON array, or the chunks of a raw body. */
export async function* readBodyMessages(
  route: Route,
  body: IncomingBody | undefined,
  limits: StreamLimits,
): AsyncGenerator<BodyMessage> {
  if (body === undefined) return;
  if (route.body.kind === "none") return requireNoContent(body, limits);
  if (takesRawBody(route)) {
    for await (const chunk of readChunks(body, createExpansionBudget(limits.maxBytes)))
      yield rawMessage(route, body.headers, chunk);
    return;
  }
  const type = requireMediaType(body.headers, listMediaTypes(route));
  const texts =
    type === jsonType
      ? splitJsonArray(await readBody(body, limits), limits.structure)
      : readLines(body, limits.maxBytes);
  for await (const text of texts) yield parseBodyMessage(route, text, limits);
}
