/** Renders messages and errors as HTTP response bodies. */
import type { JsonValue, Message, Registry } from "@bufbuild/protobuf";
import { create, toJson } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { nameCode } from "../calls/code-name.ts";
import type { RestStyle } from "../calls/service-profile.ts";
import { toHttpStatus } from "../errors.ts";
import { renderOAuthError } from "./oauth-error.ts";
import { isHttpBody, type Route } from "./routes.ts";

/** The format of a server stream. */
export interface StreamFormat {
  readonly mediaType: string;
  /** Written before the first message, if any. */
  readonly open: string;
  readonly close: string;
  /** Written before `close`, unless the stream fails. */
  readonly end?: string;
  message(json: string, index: number): string;
  error(json: string, index: number): string;
}

/** One JSON text per line. */
const lines: StreamFormat = {
  mediaType: "application/x-ndjson",
  open: "",
  close: "",
  message: (json) => `${json}\n`,
  error: (json) => `${json}\n`,
};

/** One JSON array. An error is its last element. */
const array: StreamFormat = {
  mediaType: "application/json",
  open: "[",
  close: "]\n",
  message: (json, index) => (index === 0 ? json : `,\n${json}`),
  error: (json, index) => (index === 0 ? json : `,\n${json}`),
};

/** The Last-Event-ID with which an EventSource reconnects after the end of a stream that did not fail. */
export const endEventId = "end";

/** Server-sent events (HTML, section 9.2), for EventSource. An error is an event named "error". */
export const events: StreamFormat = {
  mediaType: "text/event-stream",
  open: "",
  end: `id: ${endEventId}\n\n`,
  close: "",
  message: (json) => `data: ${json}\n\n`,
  error: (json) => `event: error\ndata: ${json}\n\n`,
};

/** Server-stream formats by media type. The first is the default. */
export const streamFormats: ReadonlyMap<string, StreamFormat> = new Map([
  [lines.mediaType, lines],
  ["application/ndjson", { ...lines, mediaType: "application/ndjson" }],
  ["application/jsonl", { ...lines, mediaType: "application/jsonl" }],
  [array.mediaType, array],
  [events.mediaType, events],
]);

/** The JSON format that a caller requests. */
export interface JsonForm {
  /** Whether enums are numbers instead of names. */
  readonly enumsAsNumbers?: boolean;
  /** Whether each member is on its own line. */
  readonly isPretty?: boolean;
}

/** Returns whether the answers of a route are raw bytes (google.api.HttpBody) instead of JSON. */
export function answersRaw({ spec, responseField: field }: Route): boolean {
  return isHttpBody(
    field === undefined ? spec.method.output : field.fieldKind === "message" ? field.message : undefined,
  );
}

/**
 * The body of a unary answer or an error. It ends with a line break, so that a terminal or file can hold
 * several.
 */
export function toBody(json: string): Uint8Array {
  return Buffer.from(`${json}\n`);
}

/**
 * Renders an answer, or its response_body field, as JSON. Includes every field without presence, so that
 * `valid: false` and `total: 0` are visible.
 */
export function renderJson(
  { spec, responseField: field }: Route,
  message: Message,
  registry: Registry,
  { enumsAsNumbers = false, isPretty = false }: JsonForm = {},
): string {
  const json = toJson(spec.method.output, message, {
    registry,
    alwaysEmitImplicit: true,
    enumAsInteger: enumsAsNumbers,
  });
  const indent = isPretty ? 2 : undefined;
  if (field === undefined) return JSON.stringify(json, undefined, indent);
  const part =
    typeof json === "object" && json !== null && !Array.isArray(json) ? json[field.jsonName] : undefined;
  return JSON.stringify(part ?? null, undefined, indent);
}

/** Reads the raw bytes of an answer, with their media type. */
export function readRaw({ spec, responseField: field }: Route, message: Message) {
  const whole = reflect(spec.method.output, message);
  const body = field === undefined ? whole : (whole.get(field) as typeof whole);
  let contentType = "";
  let data = new Uint8Array();
  for (const part of body.fields) {
    const value: unknown = body.get(part);
    if (part.name === "content_type" && typeof value === "string") contentType = value;
    if (part.name === "data" && value instanceof Uint8Array) data = new Uint8Array(value);
  }
  return { contentType: contentType === "" ? "application/octet-stream" : contentType, data };
}

/** Renders a REST error body. Details are Any messages in their JSON form. */
export function renderError(error: ConnectError, registry: Registry, style: RestStyle = "own"): string {
  if (style === "oauth") return renderOAuthError(error);
  const details = error.details.map((detail) => renderDetail(detail, registry));
  const code = nameCode(error.code);
  const message = error.rawMessage;
  if (style === "own") return JSON.stringify({ status: "error", code, message, details });
  return JSON.stringify({ error: { code: toHttpStatus(error), message, status: code, details } });
}

/** Renders a detail of unknown type as bytes, so that rendering an error cannot fail. */
function renderDetail(detail: ConnectError["details"][number], registry: Registry): JsonValue {
  const packed =
    "desc" in detail
      ? anyPack(detail.desc, create(detail.desc, detail.value))
      : create(AnySchema, { typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value });
  try {
    return toJson(AnySchema, packed, { registry });
  } catch {
    return { "@type": packed.typeUrl, value: Buffer.from(packed.value).toString("base64") };
  }
}
