/** Finds what is wrong with a request of gRPC, gRPC-Web or Connect that Connect says less of than can be said. */
import { type DescMethod, fromBinary, type Registry } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import type { ConnectError } from "@connectrpc/connect";
import { compressedFlag, type UniversalServerRequest } from "@connectrpc/connect/protocol";
import { refuse, refuseBody, toConnectError } from "../errors.ts";
import { type IncomingBody, withinTime } from "../transcoding/body.ts";
import { decodeJsonText, parseJsonMessage, refuseLooseValues } from "../transcoding/json.ts";
import { readTimeout } from "../transcoding/timeout.ts";
import { accountKey } from "./byte-budget.ts";
import { decompress, findCompression } from "./compression.ts";
import { refuseMalformed } from "./interceptors/errors.ts";

/** What bounds the requests of these protocols. */
export interface RequestLimits {
  /** Bytes of a message. */
  readonly maxBytes: number;
  /** Milliseconds for a unary request to arrive whole. */
  readonly maxReceiveMs: number;
}

/** Bytes of the flags and the length before each message of a stream. */
const prefixBytes = 5;
/** Marks the message that ends a stream in the Connect protocol. */
const endStreamFlag = 0b10;

/**
 * Checks the headers that all protocols have, and bounds the caller's deadline: Connect sets its timer to
 * whatever a caller says, and timers beyond 2^31 ms fire at once.
 *
 * @throws TIMEOUT_INVALID, ENCODING_UNSUPPORTED
 */
export function checkHead(request: UniversalServerRequest): void {
  const { header } = request;
  const timeoutMs = readTimeout(header);
  if (timeoutMs !== undefined) {
    if (header.has("connect-timeout-ms")) header.set("connect-timeout-ms", String(Math.ceil(timeoutMs)));
    // Whole seconds have room in the eight digits of this header; short deadlines keep their fractions.
    else if (timeoutMs >= 1e8) header.set("grpc-timeout", `${Math.floor(timeoutMs / 1000)}S`);
  }
  compressionOf(request);
}

function compressionOf(request: UniversalServerRequest) {
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

/** What a unary handler is given, and what of it can be looked at afterwards. */
export interface Recording {
  readonly chunks: readonly Uint8Array[];
  readonly body: AsyncIterable<Uint8Array>;
  /** Whether reading ended in an error, which the handler then knows. */
  hasFailed(): boolean;
}

/** Passes the body of a unary request on, within its time, and keeps it until the call has been understood. */
export function recordMessage(
  method: DescMethod,
  request: UniversalServerRequest,
  limits: RequestLimits,
  registry: Registry,
): Recording {
  const chunks: Uint8Array[] = [];
  const incoming = toIncoming(request);
  let failed = false;
  async function* read(): AsyncGenerator<Uint8Array> {
    if (incoming === undefined) return;
    try {
      for await (const chunk of withinTime(incoming, limits.maxReceiveMs)) {
        chunks.push(chunk);
        yield chunk;
      }
      const text = isJson(request) ? await readPlain(request, chunks, limits.maxBytes) : undefined;
      if (text !== undefined) refuseLooseValues(method.input, decodeJsonText(text), registry);
    } catch (error) {
      failed = true;
      throw error;
    }
  }
  return { chunks, body: read(), hasFailed: () => failed };
}

function isJson(request: UniversalServerRequest): boolean {
  if (request.method === "GET") return new URL(request.url).searchParams.get("encoding") === "json";
  return /[/+]json\b/i.test(request.header.get("content-type") ?? "");
}

/** Tells what is wrong with the message of a unary request; undefined if it is not the message. */
export async function findMessageFault(
  method: DescMethod,
  request: UniversalServerRequest,
  chunks: readonly Uint8Array[],
  limits: RequestLimits,
  registry: Registry,
): Promise<ConnectError | undefined> {
  const size = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const announced = Number(request.header.get("content-length") ?? 0);
  if (Math.max(size, announced) > limits.maxBytes + prefixBytes) return refuseBody(limits.maxBytes);
  try {
    const bytes = await readPlain(request, chunks, limits.maxBytes);
    if (bytes === undefined) return undefined;
    if (isJson(request)) parseJsonMessage(method.input, decodeJsonText(bytes), registry);
    else parseBinary(method, bytes);
    return undefined;
  } catch (error) {
    return toConnectError(error);
  }
}

function parseBinary(method: DescMethod, bytes: Uint8Array): void {
  try {
    fromBinary(method.input, bytes);
  } catch (error) {
    throw refuseMalformed(error instanceof Error ? error.message : String(error));
  }
}

/**
 * Takes the one message out of a unary request; undefined if there is not exactly one.
 *
 * @throws BODY_TOO_LARGE, ENCODING_INVALID, MESSAGE_MALFORMED
 */
async function readPlain(
  request: UniversalServerRequest,
  chunks: readonly Uint8Array[],
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const compression = compressionOf(request);
  const expand = (bytes: Uint8Array) =>
    compression === undefined || bytes.length === 0 ? bytes : decompress(compression, bytes, maxBytes);
  if (request.method === "GET") return expand(readQueryMessage(new URL(request.url).searchParams));
  const whole = Buffer.concat(chunks);
  const isEnveloped = /^application\/grpc/i.test(request.header.get("content-type") ?? "");
  if (!isEnveloped) return expand(whole);
  if (whole.length < prefixBytes) return undefined;
  const length = whole.readUInt32BE(1);
  if (length > maxBytes) throw refuseBody(maxBytes);
  if (whole.length !== prefixBytes + length) return undefined;
  const message = whole.subarray(prefixBytes);
  return (whole.readUInt8(0) & compressedFlag) === 0 ? message : expand(message);
}

function readQueryMessage(query: URLSearchParams): Uint8Array {
  const message = query.get("message") ?? "";
  if (query.get("base64") !== "1") return Buffer.from(message);
  try {
    return base64Decode(message);
  } catch {
    throw refuse("MESSAGE_MALFORMED", "the query parameter message is not valid base64");
  }
}

/** Checks each message of a JSON stream as it passes; other streams pass as they are. */
export async function* checkMessages(
  method: DescMethod,
  request: UniversalServerRequest,
  limits: RequestLimits,
  registry: Registry,
): AsyncGenerator<Uint8Array> {
  const incoming = toIncoming(request);
  if (incoming === undefined) return;
  if (!isJson(request)) {
    yield* withinTime(incoming);
    return;
  }
  const compression = compressionOf(request);
  for await (const envelope of splitEnvelopes(incoming, limits.maxBytes)) {
    const flags = envelope.readUInt8(0);
    const message = envelope.subarray(prefixBytes);
    const isCompressed = (flags & compressedFlag) !== 0;
    // What is compressed nobody says how, Connect refuses; what ends a stream is no message of it.
    if ((flags & endStreamFlag) === 0 && (!isCompressed || compression !== undefined)) {
      const plain =
        isCompressed && compression ? await decompress(compression, message, limits.maxBytes) : message;
      parseJsonMessage(method.input, decodeJsonText(plain), registry);
    }
    yield envelope;
  }
}

/** Yields whole envelopes; what does not become one, or would be too large, ends the stream. */
async function* splitEnvelopes(incoming: IncomingBody, maxBytes: number): AsyncGenerator<Buffer> {
  // Put together once there is enough, so that many small pieces stay cheap.
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

/** Bytes of the envelope that begins here, as far as its prefix is there to tell. */
function lengthOfFirst(bytes: Buffer, maxBytes: number): number {
  if (bytes.length < prefixBytes) return prefixBytes;
  const length = bytes.readUInt32BE(1);
  if (length > maxBytes) throw refuseBody(maxBytes);
  return prefixBytes + length;
}
