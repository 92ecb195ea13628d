/**
 * Writes the status of a gRPC call into header fields, in a form and size that every client accepts.
 *
 * Clients limit the size of response fields: grpc-java and grpcio to 8 KiB. With a larger status, the call
 * fails with the client's own error, without code and details. The status is therefore cut to fit: first the
 * text, then the details.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Any, anyIs, anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { type ConnectError, decodeBinaryHeader, encodeBinaryHeader } from "@connectrpc/connect";
import {
  headerAcceptEncoding,
  headerGrpcMessage,
  headerStatusDetailsBin,
  setTrailerStatus,
} from "@connectrpc/connect/protocol-grpc";
import { BadRequestSchema, ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { type Status, StatusSchema } from "#gen/google/rpc/status_pb.ts";

/** Maximum UTF-8 bytes of a status message; percent-encoding can triple them. */
const maxMessageBytes = 1024;
/** Maximum bytes of a google.rpc.Status; 4,096 in base64. */
const maxStatusBytes = 3072;
/** Maximum bytes of a text in the details of a truncated status. */
const maxDetailTextBytes = 128;

/** Writes the status of a failed call into the headers or trailers that end it. */
export function setGrpcStatus(target: Headers, error: ConnectError): Headers {
  setAcceptedEncodings(target, error);
  return respellGrpcStatus(setTrailerStatus(target, error));
}

/**
 * Lists the supported compressions for a client that used a different one (grpc/grpc, doc/compression.md).
 * Connect drops all error metadata that begins with "grpc-".
 */
export function setAcceptedEncodings(target: Headers, { metadata }: ConnectError): void {
  const known = metadata.get(headerAcceptEncoding);
  if (known !== null) target.set(headerAcceptEncoding, known);
}

/** Rewrites Connect's status: the message as in encodeGrpcMessage, the size within what clients accept. */
export function respellGrpcStatus(target: Headers): Headers {
  const text = target.get(headerGrpcMessage);
  if (text !== null) {
    target.set(headerGrpcMessage, encodeGrpcMessage(cutText(decodeURIComponent(text), maxMessageBytes)));
  }
  const details = target.get(headerStatusDetailsBin);
  // In base64, four characters hold three bytes.
  if (details !== null && details.length > (maxStatusBytes / 3) * 4) {
    const status = fitStatus(decodeBinaryHeader(details, StatusSchema));
    target.set(headerStatusDetailsBin, encodeBinaryHeader(status, StatusSchema));
  }
  return target;
}

/**
 * Encodes a text for the field grpc-message: "%" and the UTF-8 bytes outside 0x20 to 0x7E (grpc/grpc,
 * doc/PROTOCOL-HTTP2.md, section "Responses", Percent-Encoded).
 *
 * Connect encodes it with encodeURIComponent, but @grpc/grpc-js decodes it with decodeURI, which leaves "%3A" and
 * "%2C" encoded. gRPC-Web keeps Connect's encoding: its status is in the body, and its clients decode everything.
 *
 * Leading and trailing spaces are encoded too, because a field must not begin or end with one (RFC 9113,
 * section 8.2.1).
 */
export function encodeGrpcMessage(text: string): string {
  return text.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]+|^ | $/g, (part) => encodeURIComponent(part));
}

/** Truncates the texts of a status and keeps the details that fit. */
function fitStatus({ code, message, details }: Status): Status {
  const status = create(StatusSchema, { code, message: cutText(message, maxMessageBytes) });
  for (const detail of details) {
    const room = maxStatusBytes - toBinary(StatusSchema, status).length;
    const cut = cutDetail(detail, room - anyOverheadBytes);
    if (cut !== undefined) status.details.push(cut);
  }
  return status;
}

/** Bytes of the tag, the lengths and the type URL around a detail. */
const anyOverheadBytes = 80;

/** Truncates a detail to a number of bytes; undefined if it does not fit. */
function cutDetail(detail: Any, maxBytes: number): Any | undefined {
  if (anyIs(detail, ErrorInfoSchema)) return cutErrorInfo(detail, maxBytes);
  if (anyIs(detail, BadRequestSchema)) return cutBadRequest(detail, maxBytes);
  return detail.value.length <= maxBytes ? detail : undefined;
}

/** Always keeps the reason. */
function cutErrorInfo(detail: Any, maxBytes: number): Any {
  const info = fromBinary(ErrorInfoSchema, detail.value);
  for (const [name, value] of Object.entries(info.metadata)) {
    info.metadata[name] = cutText(value, maxDetailTextBytes);
  }
  if (toBinary(ErrorInfoSchema, info).length > maxBytes) info.metadata = {};
  return anyPack(ErrorInfoSchema, info);
}

function cutBadRequest(detail: Any, maxBytes: number): Any | undefined {
  const { fieldViolations = [] } = anyUnpack(detail, BadRequestSchema) ?? {};
  const kept = create(BadRequestSchema);
  let bytes = 0;
  for (const violation of fieldViolations) {
    violation.field = cutText(violation.field, maxDetailTextBytes);
    violation.description = cutText(violation.description, maxDetailTextBytes);
    const one = create(BadRequestSchema, { fieldViolations: [violation] });
    bytes += toBinary(BadRequestSchema, one).length;
    if (bytes > maxBytes) break;
    kept.fieldViolations.push(violation);
  }
  return kept.fieldViolations.length > 0 ? anyPack(BadRequestSchema, kept) : undefined;
}

/** Truncates a text to a number of UTF-8 bytes at a character boundary, and marks it as truncated. */
function cutText(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes - ellipsisBytes));
  return `${text.slice(0, read)}…`;
}

const ellipsisBytes = 3;
