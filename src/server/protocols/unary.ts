/**
 * How a protocol carries unary calls: what it reads of a request, and how it writes an answer or a failure.
 */
import { type Message, toJsonString } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import type { ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { CallHeaders } from "../../calls/call-headers.ts";
import { encodeAnswer } from "../../calls/kept-bytes.ts";
import type { UnaryCall } from "../../calls/unary-call.ts";
import { bodyTooLarge, refuse, toHttpStatus } from "../../errors.ts";
import { encodeBody } from "../../http/compression.ts";
import { findCompression } from "../compression.ts";
import type { Answer, Exchange } from "../exchange.ts";
import { setAcceptedEncodings, setGrpcStatus } from "../grpc-status.ts";
import { compressionInvalid } from "../interceptors/errors.ts";
import type { UnaryRpc } from "../rpcs.ts";
import type { CallForm } from "./form.ts";
import { decodeText } from "./grpc-web-text.ts";
import { readCallHead } from "./head.ts";
import { checkFramedPiece, packMessage, parseMessage, prefixBytes, unpackMessage } from "./messages.ts";

/** A request whose message has not been read yet. */
export interface ArrivingMessage {
  readonly exchange: Exchange;
  readonly form: CallForm;
  readonly rpc: UnaryRpc;
  /** The query, for a Connect GET. */
  readonly query?: URLSearchParams | undefined;
}

/** The bytes of a message and, if compressed, their compression. */
export interface MessageBytes {
  readonly bytes: Uint8Array;
  readonly compression: Compression | undefined;
}

/** How a protocol carries a unary call. */
export interface UnaryProtocol {
  /**
   * Reads the head before the body.
   *
   * @returns the milliseconds that the caller allows; undefined if it sets no limit
   */
  readHead(request: ArrivingMessage, header: Headers): number | undefined;
  /**
   * Refuses a body once the part received so far is too large.
   *
   * @throws BODY_TOO_LARGE
   */
  check(piece: Buffer, size: number, pieces: readonly Buffer[], request: ArrivingMessage): void;
  /**
   * Finds the compression that the head announces.
   *
   * @throws ENCODING_UNSUPPORTED
   */
  readCompression(request: ArrivingMessage): Compression | undefined;
  /** Extracts the message from a whole body. */
  unpack(body: Buffer, compression: Compression | undefined, request: ArrivingMessage): MessageBytes;
  /** Parses the decompressed bytes of a message. */
  decode(bytes: Uint8Array, request: ArrivingMessage): Message;
  write(message: Message, call: UnaryCall, request: ArrivingMessage): Answer | Promise<Answer>;
  writeFailure(error: ConnectError, call: UnaryCall, request: ArrivingMessage): Answer;
}

export function findRpcProtocol({ protocol }: CallForm): UnaryProtocol {
  if (protocol === "grpc") return grpc;
  return protocol === "grpc-web" ? grpcWeb : connect;
}

function encode(message: Message, { rpc, form }: ArrivingMessage): Uint8Array {
  const { output } = rpc.method;
  if (form.codec === "json")
    return Buffer.from(toJsonString(output, message, { registry: rpc.registry, alwaysEmitImplicit: true }));
  return encodeAnswer(output, message);
}

/** gRPC over HTTP/2 (grpc/grpc, doc/PROTOCOL-HTTP2.md). */
const grpc: UnaryProtocol = {
  readHead: readCallHead,
  check: (piece, size, pieces, { rpc }) => checkFramedPiece(piece, size, pieces, rpc.maxBytes),
  readCompression: ({ exchange }) =>
    findCompression(exchange.headers["grpc-encoding"]?.toString(), "grpc-accept-encoding"),
  unpack(body, compression) {
    const { isCompressed, bytes } = unpackMessage(body);
    if (!isCompressed) return { bytes, compression: undefined };
    if (compression === undefined) throw compressionInvalid();
    return { bytes, compression };
  },
  decode: (bytes, { rpc, form }) => parseMessage(rpc.method, form.codec, bytes, rpc),
  write(message, { responseHeader, responseTrailer }, request) {
    responseHeader.set("content-type", request.form.contentType);
    responseTrailer.set("grpc-status", "0");
    const body = packMessage(encode(message, request));
    return { status: 200, headers: responseHeader, body, trailers: responseTrailer };
  },
  /** Only a status ("Trailers-Only"). */
  writeFailure(error, { responseHeader, responseTrailer }, { form }) {
    responseHeader.set("content-type", form.contentType);
    setGrpcStatus(responseTrailer, error).forEach((value, name) => {
      responseHeader.set(name, value);
    });
    return { status: 200, headers: responseHeader };
  },
};

/**
 * gRPC-Web, binary and text (grpc/grpc, doc/PROTOCOL-WEB.md): the trailers are the last frame of the body.
 */
const grpcWeb: UnaryProtocol = {
  ...grpc,
  check(_piece, size, _pieces, { rpc: { maxBytes } }) {
    // Text has four characters for three bytes. The bytes themselves are counted after decoding.
    if (size > ((maxBytes + prefixBytes) / 3) * 4 + prefixBytes) throw bodyTooLarge(maxBytes);
  },
  unpack(body, compression, request) {
    const frame = isText(request.form) ? decodeText(body) : body;
    if (frame.length > request.rpc.maxBytes + prefixBytes) throw bodyTooLarge(request.rpc.maxBytes);
    return grpc.unpack(frame, compression, request);
  },
  write(message, { responseHeader, responseTrailer }, request) {
    responseTrailer.set("grpc-status", "0");
    return writeWeb(request.form, responseHeader, [
      packMessage(encode(message, request)),
      packMessage(trailerSerialize(responseTrailer), trailerFlag),
    ]);
  },
  writeFailure(error, { responseHeader, responseTrailer }, { form }) {
    const trailer = setGrpcStatus(responseTrailer, error);
    setAcceptedEncodings(responseHeader, error);
    return writeWeb(form, responseHeader, [packMessage(trailerSerialize(trailer), trailerFlag)]);
  },
};

function isText({ contentType }: CallForm): boolean {
  return contentType.startsWith("application/grpc-web-text");
}

function writeWeb(form: CallForm, headers: Headers, frames: readonly Buffer[]): Answer {
  headers.set("content-type", form.contentType);
  const bytes = Buffer.concat(frames);
  return { status: 200, headers, body: isText(form) ? Buffer.from(bytes.toString("base64")) : bytes };
}

/** Connect (https://connectrpc.com/docs/protocol): the body is the message; a GET has it in its query. */
const connect: UnaryProtocol = {
  readHead: grpc.readHead,
  check(_piece, size, _pieces, { rpc: { maxBytes } }) {
    if (size > maxBytes) throw bodyTooLarge(maxBytes);
  },
  readCompression({ exchange: { headers }, query }) {
    const name = query === undefined ? headers["content-encoding"] : query.get("compression");
    return findCompression(name, "accept-encoding");
  },
  unpack(body, compression, { query, rpc }) {
    const bytes = query === undefined ? body : readQueryMessage(query, rpc.maxBytes);
    return { bytes, compression: bytes.length === 0 ? undefined : compression };
  },
  decode: grpc.decode,
  async write(message, { responseHeader: headers, responseTrailer }, request) {
    const { exchange, form, rpc } = request;
    headers.set("content-type", form.contentType);
    // Caches may keep the answer to a GET, which would outlive what it describes, such as a destroyed key.
    if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
    muxTrailers(headers, responseTrailer);
    const plain = encode(message, request);
    const accepted = exchange.headers["accept-encoding"]?.toString() ?? null;
    const { body } = await encodeBody(rpc.method.output, accepted, headers, plain);
    return { status: 200, headers, body };
  },
  writeFailure(error, { responseHeader, responseTrailer }) {
    muxTrailers(responseHeader, responseTrailer);
    return writeConnectFailure(error, responseHeader);
  },
};

/** A unary Connect call has no room for trailers. */
function muxTrailers(headers: Headers, trailers: Headers): void {
  trailers.forEach((value, name) => {
    headers.append(`trailer-${name}`, value);
  });
}

/** Writes the failure of a unary Connect call: JSON, whatever the encoding of the messages. */
export function writeConnectFailure(error: ConnectError, headers: Headers = new CallHeaders()): Answer {
  headers.set("content-type", "application/json");
  headers.set("cache-control", "no-store");
  error.metadata.forEach((value, name) => {
    if (name !== "content-type") headers.set(name, value);
  });
  return { status: toHttpStatus(error), headers, body: errorToJsonBytes(error, undefined) };
}

function readQueryMessage(query: URLSearchParams, maxBytes: number): Uint8Array {
  const message = query.get("message") ?? "";
  const isBase64 = query.get("base64") === "1";
  if (message.length > (isBase64 ? Math.ceil(maxBytes / 3) * 4 : maxBytes)) throw bodyTooLarge(maxBytes);
  if (!isBase64) return Buffer.from(message);
  try {
    return base64Decode(message);
  } catch {
    throw refuse("MESSAGE_MALFORMED", "the query parameter message is not valid base64");
  }
}
