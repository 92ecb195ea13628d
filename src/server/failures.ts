/**
 * Writes the end of every failed call, in the form of its protocol. No other module does this.
 *
 * | protocol           | HTTP status   | the status of the call is in                                      |
 * | ------------------ | ------------- | ----------------------------------------------------------------- |
 * | gRPC               | 200           | the trailers; before any message, the headers ("Trailers-Only")   |
 * | gRPC-Web           | 200           | the last frame of the body; without a body, the headers           |
 * | Connect, unary     | of the reason | the body, as JSON                                                 |
 * | Connect, streaming | 200           | the last message of the body, as JSON                             |
 * | REST, and none     | of the reason | the body, as JSON                                                 |
 *
 * Trailers-Only is one HEADERS frame with END_STREAM (grpc/grpc, doc/PROTOCOL-HTTP2.md, section "Responses"). When
 * an empty DATA frame ends the stream instead, grpc-go, grpc-java and grpcio report their own error.
 */
import type { IncomingMessage } from "node:http";
import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import {
  createEndStreamSerialization,
  endStreamFlag,
  errorToJsonBytes,
} from "@connectrpc/connect/protocol-connect";
import {
  grpcStatusOk,
  headerAcceptEncoding,
  headerContentType,
  headerEncoding,
  headerGrpcStatus,
} from "@connectrpc/connect/protocol-grpc";
import { toHttpStatus } from "../errors.ts";
import type { RestResponse } from "../transcoding/http.ts";
import { discardRest } from "./drain-request.ts";
import { respellGrpcStatus, setGrpcStatus } from "./grpc-status.ts";
import { toNodeHeaders } from "./metadata.ts";
import { requestIdHeader } from "./request-ids.ts";
import { sendHead } from "./stream-answers.ts";

/** The protocols that a request can speak. */
export type Protocol = "grpc" | "grpc-web" | "connect" | "connect-stream" | "rest";

/** How the end of a call is written. */
export interface CallForm {
  readonly protocol: Protocol;
  /** The media type of the answer. */
  readonly contentType: string;
}

/** The parts of a request that show its protocol. `url` is the path and the query. */
export type CallHead = Pick<IncomingMessage, "headers" | "url">;

/** The form of REST, and of requests without a known protocol. */
export const restForm: CallForm = { protocol: "rest", contentType: "application/json" };
const connectJson: CallForm = { protocol: "connect", contentType: "application/json" };

/**
 * Finds the protocol of a request by the content types, Connect's headers and the query of Connect's GET.
 *
 * @param isRpcPath whether the path is that of a known RPC: there, JSON is Connect's.
 */
export function readCallForm({ headers, url = "" }: CallHead, isRpcPath: boolean): CallForm {
  const type = (headers["content-type"] ?? "").toLowerCase();
  const codec = /^[^;]*\+json\s*(;|$)/.test(type) ? "json" : "proto";
  const [, grpc] = /^application\/(grpc-web-text|grpc-web|grpc)([+;]|$)/.exec(type) ?? [];
  if (grpc === "grpc") return { protocol: "grpc", contentType: `application/grpc+${codec}` };
  if (grpc !== undefined) return { protocol: "grpc-web", contentType: `application/${grpc}+${codec}` };
  if (type.startsWith("application/connect+"))
    return { protocol: "connect-stream", contentType: `application/connect+${codec}` };
  const isConnect =
    headers["connect-protocol-version"] !== undefined ||
    /^application\/proto(;|$)/.test(type) ||
    /[?&]connect=v1(&|$)/.test(url);
  return isConnect || isRpcPath ? connectJson : restForm;
}

/**
 * Renders the whole answer of a call that failed before its first message.
 *
 * @param renderRest renders the JSON of REST.
 */
export function renderFailure(
  { protocol, contentType }: CallForm,
  error: ConnectError,
  renderRest: (error: ConnectError) => RestResponse,
): RestResponse {
  const headers = new Headers({ "content-type": contentType });
  switch (protocol) {
    case "grpc":
    case "grpc-web":
      return { status: 200, headers: setGrpcStatus(headers, error), body: new Uint8Array() };
    case "connect-stream": {
      const end = createEndStreamSerialization(undefined).serialize({ metadata: new Headers(), error });
      return withLength(200, headers, encodeEnvelope(endStreamFlag, end));
    }
    case "connect": {
      error.metadata.forEach((value, name) => {
        if (name !== "content-type") headers.append(name, value);
      });
      return withLength(toHttpStatus(error), headers, errorToJsonBytes(error, undefined));
    }
    case "rest":
      return renderRest(error);
  }
}

function withLength(status: number, headers: Headers, body: Uint8Array): RestResponse {
  headers.set("content-length", String(body.length));
  return { status, headers, body };
}

/** The fields of a gRPC status, for a stream that failed before its first message. */
export function renderTrailersOnly(error: ConnectError, trailer = new Headers()): OutgoingHttpHeaders {
  return toNodeHeaders(setGrpcStatus(trailer, error));
}

/** Ends a stream with only a status: one HEADERS frame with END_STREAM. */
export function sendTrailersOnly(stream: ServerHttp2Stream, fields: OutgoingHttpHeaders): void {
  const isSent = sendHead(stream, { ":status": 200, ...fields }, { endStream: true });
  if (isSent && !stream.readableEnded) discardRest(stream);
}

/**
 * Ends the answer of Connect's gRPC handlers as other gRPC servers do. Answers of other protocols do not change. The
 * handlers put every status into trailers, even if no message came before. They set the trailers while the body is
 * read, so the trailers are complete when the body has ended.
 */
export async function endGrpcResponse(response: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { header, body, trailer } = response;
  if (trailer === undefined || body === undefined) return response;
  const pieces = body[Symbol.asyncIterator]();
  // The handlers answer only after they have the first piece.
  const first = await pieces.next();
  const isFailure = first.done === true && trailer.get(headerGrpcStatus) !== grpcStatusOk;
  // In Trailers-Only, clients take every field for a trailer. So a handler's own headers need a separate frame.
  if (!isFailure || hasOwnHeaders(header)) {
    return {
      ...response,
      body: continueWith(first, pieces),
      get trailer() {
        return respellGrpcStatus(trailer);
      },
    };
  }
  const headers = new Headers(header);
  headers.delete(headerEncoding);
  respellGrpcStatus(trailer).forEach((value, name) => {
    headers.set(name, value);
  });
  return { status: response.status, header: headers };
}

/** Headers that every answer has, regardless of its handler. */
const serverHeaders = new Set(
  [headerContentType, headerEncoding, headerAcceptEncoding, requestIdHeader].map((name) =>
    name.toLowerCase(),
  ),
);

function hasOwnHeaders(header: UniversalServerResponse["header"]): boolean {
  return [...new Headers(header).keys()].some((name) => !serverHeaders.has(name));
}

/** An iterable of a piece that was already read and of the following pieces. */
function continueWith(
  first: IteratorResult<Uint8Array>,
  rest: AsyncIterator<Uint8Array>,
): AsyncIterable<Uint8Array> {
  let isFirst = true;
  const iterator: AsyncIterator<Uint8Array> = {
    next: async () => {
      if (!isFirst) return rest.next();
      isFirst = false;
      return first;
    },
    throw: async (error) => rest.throw?.(error) ?? Promise.reject(error),
    return: async (value) => rest.return?.(value) ?? { done: true, value },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}
