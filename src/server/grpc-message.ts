/**
 * Encodes the status message of a failed gRPC call so that every client decodes it correctly.
 *
 * Connect encodes it with encodeURIComponent, but @grpc/grpc-js decodes it with decodeURI, which leaves "%3A"
 * and "%2C" encoded. gRPC-Web keeps Connect's encoding: its status is in the body, and its clients decode
 * everything.
 */

/**
 * Encodes a text for the field grpc-message: "%" and the UTF-8 bytes outside 0x20 to 0x7E (grpc/grpc,
 * doc/PROTOCOL-HTTP2.md, section "Responses", Percent-Encoded).
 *
 * Leading and trailing spaces are encoded too, because a field must not begin or end with one (RFC 9113,
 * section 8.2.1).
 */
export function encodeGrpcMessage(text: string): string {
  return text.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]+|^ | $/g, (part) => encodeURIComponent(part));
}
