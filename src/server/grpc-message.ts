/**
 * Spells what gRPC says of a failed call so that every client reads the text as it was meant.
 *
 * Connect spells it with encodeURIComponent, and @grpc/grpc-js reads it with decodeURI, which leaves "%3A" and
 * "%2C" as they are. gRPC-Web stays as Connect has it: its status is part of the body, and its clients decode all.
 */

/**
 * Encodes a text for the field grpc-message: of its UTF-8, "%" and the bytes outside of 0x20 to 0x7E
 * (grpc/grpc, doc/PROTOCOL-HTTP2.md, section "Responses", Percent-Encoded).
 *
 * A space at either end is encoded as well: no field begins or ends with one (RFC 9113, section 8.2.1).
 */
export function encodeGrpcMessage(text: string): string {
  return text.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]+|^ | $/g, (part) => encodeURIComponent(part));
}
