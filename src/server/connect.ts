/**
 * Serves gRPC streams, gRPC-Web and Connect with Connect's own handlers, and says more exactly than they do
 * what is wrong with a request that can not be read.
 */
import { fromBinary, type Registry } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import type { ConnectRouter, ContextValues, Interceptor, ServiceImplSpec } from "@connectrpc/connect";
import { type ConnectError, createContextKey, createContextValues } from "@connectrpc/connect";
import {
  compressedFlag,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { refuseBody, toConnectError } from "../errors.ts";
import { type IncomingBody, withinTime } from "../transcoding/body.ts";
import { decodeJsonText, parseJsonMessage, refuseLooseValues } from "../transcoding/json.ts";
import { readTimeout } from "../transcoding/timeout.ts";
import { refuseMalformed } from "./interceptors/errors.ts";

/** What bounds the requests of these protocols. */
export interface RequestLimits {
  /** Bytes of a message. */
  readonly maxBytes: number;
  /** Milliseconds for a unary request to arrive whole. */
  readonly maxReceiveMs: number;
}

const reachedKey = createContextKey(false, { description: "the request was read" });

/** Outermost: notes that a request could be read, and so that an error is not one of reading. */
export const reachInterceptor: Interceptor = (next) => (req) => {
  req.contextValues.set(reachedKey, true);
  return next(req);
};

/** Bytes of the flags and the length before each message of a stream. */
const prefixBytes = 5;
/** Marks the message that ends a stream in the Connect protocol. */
const endStreamFlag = 0b10;

/** Wraps the handlers that a router has. */
export function tightenHandlers(router: ConnectRouter, limits: RequestLimits, registry: Registry): void {
  router.handlers.forEach((handler, index) => {
    router.handlers[index] = tighten(handler, limits, registry);
  });
}

/** Registers services whose implementations are already bound to their descriptors. */
export function addServices(router: ConnectRouter, services: readonly ServiceImplSpec[]): void {
  for (const { methods } of services) {
    // A spec pairs each method with an implementation of its kind; the type of the pair is lost in the map.
    for (const { method, impl } of Object.values(methods)) router.rpc(method, impl as never);
  }
}

function tighten(handler: UniversalHandler, limits: RequestLimits, registry: Registry): UniversalHandler {
  const isUnary = handler.method.methodKind === "unary";
  const handle = async (request: UniversalServerRequest): Promise<UniversalServerResponse> => {
    clampTimeout(request.header);
    return isUnary
      ? handleUnary(handler, request, limits, registry)
      : handler({ ...request, body: checkStream(handler, request, limits.maxBytes, registry) });
  };
  const { protocolNames, service, method, requestPath, allowedMethods, supportedContentType } = handler;
  return Object.assign(handle, {
    protocolNames,
    service,
    method,
    requestPath,
    allowedMethods,
    supportedContentType,
  });
}

/** Connect sets its timer to whatever a caller says, and timers beyond 2^31 ms fire at once. */
function clampTimeout(header: Headers): void {
  try {
    const timeoutMs = readTimeout(header);
    if (timeoutMs === undefined) return;
    const seconds = Math.floor(timeoutMs / 1000);
    if (header.has("grpc-timeout") && seconds > 99_999) header.set("grpc-timeout", `${seconds}S`);
  } catch {
    // Connect refuses it in the form of its protocol.
  }
}

/** What a unary handler is given, and what of it can be looked at afterwards. */
interface Recording {
  readonly chunks: Uint8Array[];
  readonly body: AsyncIterable<Uint8Array>;
}

async function handleUnary(
  handler: UniversalHandler,
  request: UniversalServerRequest,
  limits: RequestLimits,
  registry: Registry,
): Promise<UniversalServerResponse> {
  const contextValues: ContextValues = request.contextValues ?? createContextValues();
  const recording = record(handler, request, limits, registry);
  const response = await handler({ ...request, contextValues, body: recording.body });
  if (contextValues.get(reachedKey)) return response;
  const refusal = await findFault(handler, request, recording.chunks, limits, registry);
  if (refusal === undefined) return response;
  // The handler knows how its protocol carries an error: it is given one in place of the request.
  return handler({ ...request, body: failing(refusal) });
}

function record(
  handler: UniversalHandler,
  request: UniversalServerRequest,
  limits: RequestLimits,
  registry: Registry,
): Recording {
  const chunks: Uint8Array[] = [];
  const incoming = toIncoming(request);
  async function* read(): AsyncGenerator<Uint8Array> {
    if (incoming === undefined) return;
    for await (const chunk of withinTime(incoming, limits.maxReceiveMs)) {
      chunks.push(chunk);
      yield chunk;
    }
    if (isJson(request)) {
      const text = await readPlain(request, chunks, limits.maxBytes);
      if (text !== undefined) refuseLooseValues(handler.method.input, decodeJsonText(text), registry);
    }
  }
  return { chunks, body: read() };
}

function toIncoming({ body, header, signal }: UniversalServerRequest): IncomingBody | undefined {
  if (typeof body !== "object" || body === null || !(Symbol.asyncIterator in body)) return undefined;
  return { chunks: body as AsyncIterable<Uint8Array>, headers: header, signal };
}

function failing(error: ConnectError): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }) };
}

function isJson(request: UniversalServerRequest): boolean {
  if (request.method === "GET") return new URL(request.url).searchParams.get("encoding") === "json";
  return /[/+]json\b/i.test(request.header.get("content-type") ?? "");
}

/** Tells what is wrong with the message of a request that was not read; undefined if it is not the message. */
async function findFault(
  handler: UniversalHandler,
  request: UniversalServerRequest,
  chunks: readonly Uint8Array[],
  limits: RequestLimits,
  registry: Registry,
): Promise<ConnectError | undefined> {
  const size = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const announced = Number(request.header.get("content-length") ?? 0);
  if (Math.max(size, announced) > limits.maxBytes + prefixBytes) return refuseBody(limits.maxBytes);
  const bytes = await readPlain(request, chunks, limits.maxBytes);
  if (bytes === undefined) return undefined;
  try {
    if (isJson(request)) parseJsonMessage(handler.method.input, decodeJsonText(bytes), registry);
    else parseBinary(handler, bytes);
    return undefined;
  } catch (error) {
    return toConnectError(error);
  }
}

function parseBinary(handler: UniversalHandler, bytes: Uint8Array): void {
  try {
    fromBinary(handler.method.input, bytes);
  } catch (error) {
    throw refuseMalformed(error instanceof Error ? error.message : String(error));
  }
}

/** Takes the one message out of a unary request; undefined if there is not exactly one that can be read. */
async function readPlain(
  request: UniversalServerRequest,
  chunks: readonly Uint8Array[],
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const query = request.method === "GET" ? new URL(request.url).searchParams : undefined;
  const whole = query === undefined ? Buffer.concat(chunks) : readQueryMessage(query);
  if (whole === undefined) return undefined;
  const isEnveloped = /^application\/grpc/i.test(request.header.get("content-type") ?? "");
  if (!isEnveloped) {
    return decompress(whole, query?.get("compression") ?? request.header.get("content-encoding"), maxBytes);
  }
  if (whole.length < prefixBytes || whole.length !== prefixBytes + whole.readUInt32BE(1)) return undefined;
  const message = whole.subarray(prefixBytes);
  const isCompressed = (whole.readUInt8(0) & compressedFlag) !== 0;
  return isCompressed ? decompress(message, request.header.get("grpc-encoding"), maxBytes) : message;
}

function readQueryMessage(query: URLSearchParams): Buffer | undefined {
  const message = query.get("message") ?? "";
  try {
    return Buffer.from(query.get("base64") === "1" ? base64Decode(message) : message);
  } catch {
    return undefined;
  }
}

async function decompress(
  bytes: Uint8Array,
  encoding: string | null,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  if (encoding === null || encoding === "" || encoding === "identity") return bytes;
  const compression = [compressionGzip, compressionBrotli].find(({ name }) => name === encoding);
  try {
    return await compression?.decompress(bytes, maxBytes);
  } catch {
    return undefined;
  }
}

/** Refuses integers that JSON can not carry in each message of a JSON stream; other streams pass as they are. */
async function* checkStream(
  handler: UniversalHandler,
  request: UniversalServerRequest,
  maxBytes: number,
  registry: Registry,
): AsyncGenerator<Uint8Array> {
  const incoming = toIncoming(request);
  if (incoming === undefined) return;
  if (!isJson(request)) {
    yield* withinTime(incoming);
    return;
  }
  const encoding = request.header.get("connect-content-encoding") ?? request.header.get("grpc-encoding");
  let rest = Buffer.alloc(0);
  for await (const chunk of withinTime(incoming)) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= prefixBytes && rest.length >= prefixBytes + rest.readUInt32BE(1)) {
      const end = prefixBytes + rest.readUInt32BE(1);
      const flags = rest.readUInt8(0);
      const message = rest.subarray(prefixBytes, end);
      const plain = (flags & compressedFlag) === 0 ? message : await decompress(message, encoding, maxBytes);
      if (plain !== undefined && (flags & endStreamFlag) === 0) {
        refuseLooseValues(handler.method.input, decodeJsonText(plain), registry);
      }
      yield rest.subarray(0, end);
      rest = rest.subarray(end);
    }
    // Too long a message goes on to Connect, whose limit it meets.
    if (rest.length > maxBytes + prefixBytes) {
      yield rest;
      rest = Buffer.alloc(0);
    }
  }
  if (rest.length > 0) yield rest;
}
