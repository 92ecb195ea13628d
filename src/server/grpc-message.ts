/**
 * Spells what gRPC says of a failed call so that every client reads the text as it was meant.
 *
 * Connect spells it with encodeURIComponent, and @grpc/grpc-js reads it with decodeURI, which leaves "%3A" and
 * "%2C" as they are. gRPC-Web stays as Connect has it: its status is part of the body, and its clients decode all.
 */
import type { ConnectError } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { headerGrpcMessage, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";

/**
 * Encodes a text for the field grpc-message: of its UTF-8, "%" and the bytes outside of 0x20 to 0x7E
 * (grpc/grpc, doc/PROTOCOL-HTTP2.md, section "Responses", Percent-Encoded).
 *
 * A space at either end is encoded as well: no field begins or ends with one (RFC 9113, section 8.2.1).
 */
export function encodeGrpcMessage(text: string): string {
  return text.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]+|^ | $/g, (part) => encodeURIComponent(part));
}

/** Writes the status of a failed call into the headers, or the trailers, that end it. */
export function setGrpcStatus(target: Headers, error: ConnectError): Headers {
  return respell(setTrailerStatus(target, error));
}

/**
 * Respells the status at the end of an answer of Connect's gRPC handlers. They fill in the trailers while the body
 * is read; whoever sends them asks for them after that, so that is when they are respelled.
 */
export function respellTrailers(response: UniversalServerResponse): UniversalServerResponse {
  const { trailer } = response;
  if (trailer === undefined) return response;
  return {
    ...response,
    get trailer() {
      return respell(trailer);
    },
  };
}

function respell(target: Headers): Headers {
  const message = target.get(headerGrpcMessage);
  if (message !== null) target.set(headerGrpcMessage, encodeGrpcMessage(decodeURIComponent(message)));
  return target;
}
