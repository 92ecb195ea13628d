/** The transcoder's own HTTP types. src/server/protocols/rest.ts connects them to sockets. */
import type { Registry } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import type { RestStyle } from "../calls/service-profile.ts";
import { toHttpStatus } from "../errors.ts";
import type { ByteMeter } from "./body.ts";
import { renderError, toBody } from "./rendering.ts";

/** An HTTP request, independent of the server. */
export interface RestRequest {
  /** The method, in upper case. */
  readonly method: string;
  /** The raw request target: path and query, neither decoded nor normalized. */
  readonly target: string;
  readonly headers: Headers;
  /** Undefined if the request has no body. */
  readonly body: AsyncIterable<Uint8Array> | undefined;
  /** Counts the bytes of the body that are held in memory. */
  readonly meter?: ByteMeter | undefined;
  /** Values that the server sets before the call begins. */
  readonly contextValues?: ContextValues;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
}

/** An HTTP response with a complete or streamed body. */
export interface RestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
  /** The trailers of the RPC. They are complete once a streamed body has ended. */
  readonly trailers?: Headers;
}

/** A request target split in two, not decoded. */
export interface Target {
  readonly path: string;
  readonly rawQuery: string;
}

/** Splits a target in origin, absolute or asterisk form into path and query (RFC 9112, section 3.2). */
export function splitTarget(target: string): Target {
  const isPlain = target.startsWith("/") && !target.includes("#");
  const origin = isPlain
    ? target
    : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, "").replace(/#.*$/s, "");
  const mark = origin.indexOf("?");
  const path = mark < 0 ? origin : origin.slice(0, mark);
  const rawQuery = mark < 0 ? "" : origin.slice(mark + 1);
  if (path === "*") return { path, rawQuery };
  return { path: path.startsWith("/") ? path : `/${path}`, rawQuery };
}

export function failureResponse(error: ConnectError, registry: Registry, style: RestStyle): RestResponse {
  const body = toBody(renderError(error, registry, style));
  const headers = new Headers(error.metadata);
  headers.set("content-type", "application/json");
  headers.set("content-length", String(body.length));
  headers.set("cache-control", "no-store");
  return { status: toHttpStatus(error), headers, body };
}

/** An answer without content. */
export function emptyResponse(headers: Record<string, string> = {}): RestResponse {
  return { status: 204, headers: new Headers(headers), body: new Uint8Array() };
}

/** Removes the body of a response, for HEAD. */
export function withoutContent(response: RestResponse): RestResponse {
  if (!(response.body instanceof Uint8Array)) closeStream(response.body).catch(() => {});
  return { ...response, body: new Uint8Array() };
}

/** Ends a stream that will not be read. */
async function closeStream(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _piece of body) return;
}
