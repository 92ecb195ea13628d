/** Writes a unary answer. */
import type { Message, Registry } from "@bufbuild/protobuf";
import { encodeBody } from "../http/compression.ts";
import { computeEntityTag, matchesEntityTag, toWeakTag } from "../http/entity-tags.ts";
import type { RestRequest, RestResponse } from "./http.ts";
import { chooseMediaType } from "./negotiation.ts";
import { answersRaw, type JsonForm, readRaw, renderJson, toBody } from "./rendering.ts";
import type { Route } from "./routes.ts";

/** The headers that a handler sets. */
export interface AnswerHeaders {
  readonly responseHeader: Headers;
  readonly responseTrailer: Headers;
}

/** How the messages of a call are rendered. */
export interface Rendering {
  readonly route: Route;
  readonly registry: Registry;
  readonly form?: JsonForm | undefined;
}

/** Refuses a request that does not accept JSON. For raw bytes, only the handler knows the media type. */
export function requireJson(headers: Headers, route: Route): undefined {
  if (!answersRaw(route)) chooseMediaType(headers.get("accept"), ["application/json"]);
}

/** Renders a message into an answer with the headers that its handler set. */
export async function writeAnswer(
  { method, headers: asked }: Pick<RestRequest, "method" | "headers">,
  message: Message,
  { responseHeader: headers, responseTrailer }: AnswerHeaders,
  rendering: Rendering,
): Promise<RestResponse> {
  // As in the Connect protocol for unary calls, which have no room for trailers.
  responseTrailer.forEach((value, name) => {
    headers.set(`trailer-${name}`, value);
  });
  const plain = render(message, headers, rendering);
  const { output } = rendering.route.spec.method;
  const { body, isCoded } = await encodeBody(output, asked.get("accept-encoding"), headers, plain);
  const isSafe = method === "GET" || method === "HEAD";
  if (!headers.has("cache-control")) headers.set("cache-control", isSafe ? "private, no-cache" : "no-store");
  if (isSafe) {
    const strongTag = headers.get("etag") ?? computeEntityTag(plain);
    // RFC 9110, section 8.8.1: a strong tag identifies exact bytes, and compression changes them.
    const tag = isCoded ? toWeakTag(strongTag) : strongTag;
    headers.set("etag", tag);
    if (matchesEntityTag(asked.get("if-none-match"), tag)) {
      headers.delete("content-type");
      headers.delete("content-encoding");
      return { status: 304, headers, body: new Uint8Array() };
    }
  }
  headers.set("content-length", String(body.length));
  return { status: 200, headers, body };
}

function render(message: Message, headers: Headers, { route, registry, form }: Rendering): Uint8Array {
  if (!answersRaw(route)) {
    headers.set("content-type", "application/json");
    return toBody(renderJson(route, message, registry, form));
  }
  const { contentType, data } = readRaw(route, message);
  headers.set("content-type", contentType);
  return data;
}
