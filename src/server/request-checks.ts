/** Reads the messages of gRPC, gRPC-Web and Connect within their limits, and reports exactly what is invalid. */
import { type DescMethod, fromBinary, type Message, type Registry } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import type { ConnectError } from "@connectrpc/connect";
import { compressedFlag, type UniversalServerRequest } from "@connectrpc/connect/protocol";
import { excerpt } from "../errors/shorten.ts";
import { bodyTooLarge, refuse, toConnectError } from "../errors.ts";
import { createExpansionBudget } from "../protocol/expansion.ts";
import type { StructureLimits } from "../protocol/structure-limits.ts";
import { readTimeout } from "../protocol/timeout.ts";
import { scanMessage } from "../protocol/wire-structure.ts";
import { type IncomingBody, withinTime } from "../transcoding/body.ts";
import { parseJsonMessage } from "../transcoding/json.ts";
import { accountKey } from "./byte-budget.ts";
import { decompress, findCompression } from "./compression.ts";
import { compressionInvalid, messageMalformed } from "./interceptors/errors.ts";

/** Limits of the requests of these protocols. */
export interface RequestLimits {
  /** Bytes of a message. */
  readonly maxBytes: number;
  /** Milliseconds for a complete unary request to arrive. */
  readonly maxReceiveMs: number;
  /** Limits of the structure of a message. */
  readonly structure: StructureLimits;
}

/** The limits and the types that messages are checked against. */
export interface MessageChecks {
  readonly limits: RequestLimits;
  readonly registry: Registry;
}

/** Bytes of the flags and the length before each message of a stream. */
const prefixBytes = 5;
/** Marks the message that ends a stream in the Connect protocol. */
const endStreamFlag = 0b10;

/**
 * Checks the headers that all protocols have, and limits the caller's deadline. Connect sets a timer to any value
 * that a caller sends, and timers beyond 2^31 ms fire at once.
 *
 * @throws HTTP_INVALID, TIMEOUT_INVALID, ENCODING_UNSUPPORTED
 */
export function checkHead(request: UniversalServerRequest): void {
  const { header } = request;
  requireConnectVersion(request);
  const timeoutMs = readTimeout(header);
  if (timeoutMs !== undefined) {
    if (header.has("connect-timeout-ms")) header.set("connect-timeout-ms", String(Math.ceil(timeoutMs)));
    // Whole seconds fit into the eight digits of this header. Short deadlines keep their fractions.
    else if (timeoutMs >= 1e8) header.set("grpc-timeout", `${Math.floor(timeoutMs / 1000)}S`);
  }
  readCompression(request);
}

/**
 * Refuses another version of Connect than 1 (connectrpc.com/docs/protocol, "Unary-Request"). Connect's handlers look at the
 * version only if it is required, and some clients leave it out.
 *
 * @throws HTTP_INVALID
 */
function requireConnectVersion({ method, header, url }: UniversalServerRequest): void {
  const isGet = method === "GET";
  const version = isGet ? new URL(url).searchParams.get("connect") : header.get("connect-protocol-version");
  const expected = isGet ? "v1" : "1";
  if (version === null || version === expected) return;
  const name = isGet ? "the query parameter connect" : "the header connect-protocol-version";
  throw refuse("HTTP_INVALID", `${name} is "${excerpt(version)}"; it must be "${expected}"`);
}

function readCompression(request: UniversalServerRequest) {
  const { header, method, url } = request;
  if (method === "GET") {
    return findCompression(new URL(url).searchParams.get("compression"), "accept-encoding");
  }
  const type = header.get("content-type") ?? "";
  if (/^application\/grpc/i.test(type))
    return findCompression(header.get("grpc-encoding"), "grpc-accept-encoding");
  return /^application\/connect\+/i.test(type)
    ? findCompression(header.get("connect-content-encoding"), "connect-accept-encoding")
    : findCompression(header.get("content-encoding"), "accept-encoding");
}

/** The body of a request, if it has one that arrives in pieces. */
export function toIncoming(request: UniversalServerRequest): IncomingBody | undefined {
  const { body, header, signal, contextValues } = request;
  if (typeof body !== "object" || body === null || !(Symbol.asyncIterator in body)) return undefined;
  const meter = contextValues?.get(accountKey);
  return { chunks: body as AsyncIterable<Uint8Array>, headers: header, signal, meter };
}

/** Receives a message that was read here instead of in Connect. */
export type ReadMessage = (message: Message) => void;

/**
 * Reads the message of a unary request within its time limit: removes its envelope, decompresses it, counts its
 * parts and parses it.
 *
 * @param onMessage receives the message.
 * @returns the body of an empty message of the same form, which Connect reads at no cost.
 * @throws BODY_TOO_LARGE, REQUEST_TOO_SLOW, BODY_INCOMPLETE, NOT_IMPLEMENTED, and what parseMessage throws
 */
export async function* readMessage(
  method: DescMethod,
  request: UniversalServerRequest,
  checks: MessageChecks,
  onMessage: ReadMessage,
): AsyncGenerator<Uint8Array> {
  const incoming = toIncoming(request);
  if (incoming === undefined) return;
  const { limits } = checks;
  const announced = Number(request.header.get("content-length") ?? 0);
  if (announced > limits.maxBytes + prefixBytes) throw bodyTooLarge(limits.maxBytes);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of withinTime(incoming, limits.maxReceiveMs)) {
    size += chunk.length;
    if (size > limits.maxBytes + prefixBytes) throw bodyTooLarge(limits.maxBytes);
    chunks.push(chunk);
  }
  const body = chunks.length === 1 ? Buffer.from(chunks[0] as Uint8Array) : Buffer.concat(chunks, size);
  onMessage(parseMessage(method, request, await readPlain(request, body, limits.maxBytes), checks));
  const empty = Buffer.from(isJson(request) ? "{}" : "");
  yield isGrpc(request) ? putIntoEnvelope(empty, 0) : empty;
}

/** Copies the headers of a request without those that describe the body, because readMessage has replaced it. */
export function withoutBodyHeaders(header: Headers): Headers {
  const rest = new Headers(header);
  rest.delete("content-length");
  if (!/^application\/(grpc|connect\+)/i.test(header.get("content-type") ?? ""))
    rest.delete("content-encoding");
  return rest;
}

/** @throws MESSAGE_TOO_COMPLEX, MESSAGE_MALFORMED, JSON_INVALID, FIELD_INVALID */
function parseMessage(
  { input }: DescMethod,
  request: UniversalServerRequest,
  bytes: Uint8Array,
  { limits: { structure }, registry }: MessageChecks,
): Message {
  if (isJson(request)) return parseJsonMessage(input, bytes, { registry, structure }).message;
  scanMessage(input, bytes, structure);
  try {
    return fromBinary(input, bytes);
  } catch (error) {
    throw messageMalformed(error instanceof Error ? error.message : String(error));
  }
}

function isGrpc({ header }: UniversalServerRequest): boolean {
  return /^application\/grpc/i.test(header.get("content-type") ?? "");
}

function putIntoEnvelope(message: Uint8Array, flags: number): Buffer {
  const envelope = Buffer.alloc(prefixBytes + message.length);
  envelope.writeUInt8(flags, 0);
  envelope.writeUInt32BE(message.length, 1);
  envelope.set(message, prefixBytes);
  return envelope;
}

function isJson(request: UniversalServerRequest): boolean {
  if (request.method === "GET") return new URL(request.url).searchParams.get("encoding") === "json";
  return /[/+]json\b/i.test(request.header.get("content-type") ?? "");
}

/** Finds what is wrong with the message in the target of a GET request; undefined if it is valid. */
export async function findQueryFault(
  method: DescMethod,
  request: UniversalServerRequest,
  checks: MessageChecks,
): Promise<ConnectError | undefined> {
  try {
    const bytes = readQueryMessage(new URL(request.url).searchParams, checks.limits.maxBytes);
    const plain = await expand(request, bytes, checks.limits.maxBytes);
    parseMessage(method, request, plain, checks);
    return undefined;
  } catch (error) {
    return toConnectError(error);
  }
}

async function expand(
  request: UniversalServerRequest,
  bytes: Uint8Array,
  maxBytes: number,
): Promise<Uint8Array> {
  const compression = readCompression(request);
  return compression === undefined || bytes.length === 0 ? bytes : decompress(compression, bytes, maxBytes);
}

/**
 * Extracts the single message of a unary request.
 *
 * @throws BODY_TOO_LARGE, BODY_INCOMPLETE, NOT_IMPLEMENTED, ENCODING_INVALID, ENCODING_MISSING
 */
async function readPlain(
  request: UniversalServerRequest,
  body: Buffer,
  maxBytes: number,
): Promise<Uint8Array> {
  if (!isGrpc(request)) {
    if (body.length > maxBytes) throw bodyTooLarge(maxBytes);
    return expand(request, body, maxBytes);
  }
  if (body.length === 0) throw refuse("NOT_IMPLEMENTED", "the request has no message; a unary call has one");
  if (body.length < prefixBytes)
    throw refuse("BODY_INCOMPLETE", "the request ends within the prefix of a message");
  const end = lengthOfFirst(body, maxBytes);
  if (body.length < end)
    throw refuse("BODY_INCOMPLETE", `the request ends ${end - body.length} bytes too early`);
  if (body.length > end)
    throw refuse("NOT_IMPLEMENTED", "the request has several messages; a unary call has one");
  const message = body.subarray(prefixBytes);
  if ((body.readUInt8(0) & compressedFlag) === 0) return message;
  if (readCompression(request) === undefined) throw compressionInvalid();
  return expand(request, message, maxBytes);
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

/**
 * Checks each message of a stream as it passes. JSON is parsed only here: Connect reads an empty message instead,
 * and onMessage receives the real one. Protobuf is passed on decompressed, and Connect parses it.
 *
 * @throws BODY_TOO_LARGE, BODY_INCOMPLETE, ENCODING_INVALID, and what parseMessage throws
 */
export async function* checkMessages(
  method: DescMethod,
  request: UniversalServerRequest,
  checks: MessageChecks,
  onMessage: ReadMessage,
): AsyncGenerator<Uint8Array> {
  const incoming = toIncoming(request);
  if (incoming === undefined) return;
  const { maxBytes, structure } = checks.limits;
  const compression = readCompression(request);
  const budget = createExpansionBudget(maxBytes);
  for await (const envelope of splitEnvelopes(incoming, maxBytes)) {
    const flags = envelope.readUInt8(0);
    const isCompressed = (flags & compressedFlag) !== 0;
    // The end of a Connect stream is not a message. Connect refuses compressed messages if no header names a codec.
    const isEnd = !isGrpc(request) && (flags & endStreamFlag) !== 0;
    if (isEnd || (isCompressed && compression === undefined)) {
      yield envelope;
      continue;
    }
    let plain: Uint8Array = envelope.subarray(prefixBytes);
    if (isCompressed && compression !== undefined) {
      budget.addCompressed(envelope.length);
      plain = await decompress(compression, plain, maxBytes);
      budget.addExpanded(plain.length);
    }
    const plainFlags = flags & ~compressedFlag;
    if (isJson(request)) {
      onMessage(parseMessage(method, request, plain, checks));
      yield putIntoEnvelope(Buffer.from("{}"), plainFlags);
    } else {
      scanMessage(method.input, plain, structure);
      yield isCompressed ? putIntoEnvelope(plain, plainFlags) : envelope;
    }
  }
}

/** Yields complete envelopes. An incomplete or too large envelope ends the stream with an error. */
async function* splitEnvelopes(incoming: IncomingBody, maxBytes: number): AsyncGenerator<Buffer> {
  // The pieces are joined only when there are enough bytes, so that many small pieces stay cheap.
  let pieces: Uint8Array[] = [];
  let size = 0;
  let wanted = prefixBytes;
  for await (const chunk of withinTime(incoming)) {
    pieces.push(chunk);
    size += chunk.length;
    if (size < wanted) continue;
    let rest = Buffer.concat(pieces, size);
    wanted = lengthOfFirst(rest, maxBytes);
    while (rest.length >= wanted && rest.length >= prefixBytes) {
      yield rest.subarray(0, wanted);
      rest = rest.subarray(wanted);
      wanted = lengthOfFirst(rest, maxBytes);
    }
    pieces = [rest];
    size = rest.length;
  }
  if (size > 0) throw refuse("BODY_INCOMPLETE", "the request ends within a message");
}

/** Bytes of the first envelope, or of its prefix while that is incomplete. */
function lengthOfFirst(bytes: Buffer, maxBytes: number): number {
  if (bytes.length < prefixBytes) return prefixBytes;
  const length = bytes.readUInt32BE(1);
  if (length > maxBytes) throw bodyTooLarge(maxBytes);
  return prefixBytes + length;
}
