/** Answers requests that reach no call, in the form of the protocol they speak. */
import type http from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { httpStatusOf } from "../errors.ts";
import type { RestResponse } from "../transcoding/http.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import { setGrpcStatus } from "./grpc-message.ts";

/** The protocols that a request can speak. */
export type Protocol = "grpc" | "grpc-web" | "connect" | "rest";

/**
 * Tells which protocol a request speaks, by what the protocols reserve: content types and Connect's headers.
 *
 * @param isRpcPath whether the path is that of a known RPC: there, JSON is Connect's.
 */
export function protocolOf(headers: http.IncomingHttpHeaders, isRpcPath: boolean): Protocol {
  const type = headers["content-type"] ?? "";
  if (/^application\/grpc-web(-text)?([+;]|$)/i.test(type)) return "grpc-web";
  if (/^application\/grpc([+;]|$)/i.test(type)) return "grpc";
  if (headers["connect-protocol-version"] !== undefined || /^application\/(connect\+|proto(;|$))/i.test(type))
    return "connect";
  return isRpcPath ? "connect" : "rest";
}

/** Renders an error for a protocol. */
export function renderFailureFor(
  protocol: Protocol,
  error: ConnectError,
  transcoder: Transcoder,
): RestResponse {
  switch (protocol) {
    case "grpc":
    case "grpc-web": {
      // A trailers-only answer: HTTP 200, and the status in the headers.
      const headers = setGrpcStatus(new Headers({ "content-type": `application/${protocol}` }), error);
      return { status: 200, headers, body: new Uint8Array() };
    }
    case "connect": {
      const body = errorToJsonBytes(error, undefined);
      const headers = new Headers(error.metadata);
      headers.set("content-type", "application/json");
      headers.set("content-length", String(body.length));
      return { status: httpStatusOf(error), headers, body };
    }
    case "rest":
      return transcoder.renderFailure(error);
  }
}
