/**
 * Writes the failure of a call before its first message, in the form of its protocol.
 *
 * | protocol           | HTTP status   | where the call status is                                          |
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
import type { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { createEndStreamSerialization, endStreamFlag } from "@connectrpc/connect/protocol-connect";
import {
  grpcStatusOk,
  headerAcceptEncoding,
  headerContentType,
  headerEncoding,
  headerGrpcStatus,
} from "@connectrpc/connect/protocol-grpc";
import { CallHeaders } from "../../calls/call-headers.ts";
import type { Answer } from "../exchange.ts";
import { respellGrpcStatus, setGrpcStatus } from "../grpc-status.ts";
import { requestIdHeader } from "../request-ids.ts";
import type { CallForm } from "./form.ts";
import { writeConnectFailure } from "./unary.ts";

/**
 * Renders the whole answer of a call that failed before its first message.
 *
 * @param renderRest renders the JSON for REST
 */
export function renderFailure(
  { protocol, contentType }: CallForm,
  error: ConnectError,
  renderRest: (error: ConnectError) => Answer,
): Answer {
  const headers = new CallHeaders();
  headers.set("content-type", contentType);
  switch (protocol) {
    case "grpc":
    case "grpc-web":
      return { status: 200, headers: setGrpcStatus(headers, error) };
    case "connect-stream": {
      const end = createEndStreamSerialization(undefined).serialize({ metadata: new Headers(), error });
      return { status: 200, headers, body: encodeEnvelope(endStreamFlag, end) };
    }
    case "connect":
      return writeConnectFailure(error);
    case "rest":
      return renderRest(error);
  }
}

/**
 * Ends the answers of Connect's gRPC handlers as other gRPC servers do. Answers of other protocols do not
 * change. The handlers put every status into trailers, even if no message came before. They set the trailers
 * while the body is read, so the trailers are complete when the body has ended.
 */
export async function endGrpcResponse(response: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { header, body, trailer } = response;
  if (trailer === undefined || body === undefined) return response;
  const pieces = body[Symbol.asyncIterator]();
  // The handlers answer only once they have the first piece.
  const first = await pieces.next();
  const isFailure = first.done === true && trailer.get(headerGrpcStatus) !== grpcStatusOk;
  // In Trailers-Only, clients take every field for a trailer, so a handler's own headers need a separate
  // frame.
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

/** Yields a piece that was already read, then the remaining pieces. */
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
