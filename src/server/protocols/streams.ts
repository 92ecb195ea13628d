/**
 * Serves gRPC, gRPC-Web and Connect streams with Connect's own handlers, which get their messages from an
 * exchange.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import {
  type ConnectRouterOptions,
  type ContextValues,
  createConnectRouter,
  type ServiceImplSpec,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { CallHeaders } from "../../calls/call-headers.ts";
import { createLoopTurns, type TakeTurn } from "../../crypto/loop-turns.ts";
import { createExpansionBudget } from "../../message-limits/expansion.ts";
import { type IncomingBody, withinTime } from "../../transcoding/body.ts";
import { meterKey } from "../byte-budget.ts";
import { decompress, findCompression } from "../compression.ts";
import type { Exchange } from "../exchange.ts";
import { compressionInvalid } from "../interceptors/errors.ts";
import { drainRequestMs } from "../node-workarounds.ts";
import type { Rpc } from "../rpcs.ts";
import { splitEnvelopes } from "./envelopes.ts";
import { endGrpcResponse } from "./failures.ts";
import type { CallForm } from "./form.ts";
import { decodePieces, toBinaryHeader, toTextResponse } from "./grpc-web-text.ts";
import { readCallHead } from "./head.ts";
import { packMessage, parseMessage, prefixBytes, readCompressedFlag } from "./messages.ts";

/** A stream that has been routed and admitted. */
export interface AdmittedStream {
  readonly exchange: Exchange;
  readonly form: CallForm;
  readonly rpc: Rpc;
  readonly values: ContextValues;
}

/**
 * Serves a stream.
 *
 * @throws a refusal before the handler has begun
 */
export type ServeStream = (stream: AdmittedStream) => Promise<void>;

/** Flags of the messages that end streams, in Connect and gRPC-Web. */
const connectEnd = 0x02;
const grpcWebEnd = 0x80;

/** Creates the handlers for the streams of services. */
export function createStreams(
  services: readonly ServiceImplSpec[],
  options: ConnectRouterOptions,
): ServeStream {
  const router = createConnectRouter(options);
  for (const { methods } of services) {
    for (const { method, impl, kind } of Object.values(methods)) {
      // A spec pairs each method with an implementation of its kind. The map loses the type of the pair.
      if (kind !== "unary") router.rpc(method, impl as never);
    }
  }
  const handlers = new Map<DescMethod, UniversalHandler>(router.handlers.map((one) => [one.method, one]));
  const takeTurn = createLoopTurns(messagesPerTurn);
  return async (stream) => {
    const { exchange, form, rpc } = stream;
    const handler = handlers.get(rpc.method);
    if (handler === undefined) throw new Error(`${rpc.method.name} is not a stream`);
    const response = await endGrpcResponse(await answer(handler, stream, takeTurn));
    await exchange.send({
      status: response.status,
      headers: new Headers(response.header),
      body: response.body,
      // The handlers set the trailers while the body is read.
      get trailers() {
        return response.trailer;
      },
      isLast: findLast(form),
    });
  };
}

/**
 * Recognizes the message with the outcome. connect-go stops sending when it reads it, after fewer bytes than
 * it announced, and nghttp2 resets the stream unless it has ended.
 */
function findLast({ protocol, contentType }: CallForm): ((piece: Uint8Array) => boolean) | undefined {
  if (protocol === "connect-stream") return ([flags = 0]) => (flags & connectEnd) !== 0;
  if (protocol !== "grpc-web" || contentType.includes("-text")) return undefined;
  return ([flags = 0]) => (flags & grpcWebEnd) !== 0;
}

/**
 * Messages passed on per event-loop turn, across all streams. A TCP segment can contain a thousand small
 * messages, each with a large answer: without turns, all would be answered before any other call.
 */
const messagesPerTurn = 8;

async function answer(
  handler: UniversalHandler,
  stream: AdmittedStream,
  takeTurn: TakeTurn,
): Promise<UniversalServerResponse> {
  const { exchange, form, rpc, values } = stream;
  const header = new CallHeaders(exchange.headers);
  limitTimeout(header, form, readCallHead(stream, header));
  const compression = findStreamCompression(form, header);
  const isText = form.contentType.includes("grpc-web-text");
  if (isText) toBinaryHeader(header);
  const { httpVersion, method, url, signal } = exchange;
  const incoming: IncomingBody = {
    chunks: isText ? decodePieces(exchange.pieces()) : exchange.pieces(),
    headers: header,
    signal,
    meter: values.get(meterKey),
  };
  const messages = checkMessages(rpc, form, incoming, compression, takeTurn);
  const body = httpVersion === "2.0" ? readWhole(incoming, messages) : messages;
  const response = await handler({ httpVersion, method, url, header, body, signal, contextValues: values });
  return isText ? toTextResponse(response) : response;
}

/** Connect sets a timer to any value that a caller sends, and timers beyond 2^31 ms fire at once. */
function limitTimeout(header: Headers, { protocol }: CallForm, timeoutMs: number | undefined): void {
  if (timeoutMs === undefined) return;
  if (protocol === "connect-stream") header.set("connect-timeout-ms", String(Math.ceil(timeoutMs)));
  // Whole seconds fit into the eight digits of this header. Short deadlines keep their fractions.
  else if (timeoutMs >= 1e8) header.set("grpc-timeout", `${Math.floor(timeoutMs / 1000)}S`);
}

function findStreamCompression({ protocol }: CallForm, header: Headers) {
  return protocol === "connect-stream"
    ? findCompression(header.get("connect-content-encoding"), "connect-accept-encoding")
    : findCompression(header.get("grpc-encoding"), "grpc-accept-encoding");
}

/**
 * Checks each message of a stream when its turn comes, and passes it on decompressed.
 *
 * @throws BODY_TOO_LARGE, BODY_INCOMPLETE, ENCODING_INVALID, ENCODING_MISSING, and whatever parseMessage throws
 */
async function* checkMessages(
  rpc: Rpc,
  form: CallForm,
  incoming: IncomingBody,
  compression: ReturnType<typeof findCompression>,
  takeTurn: TakeTurn,
): AsyncGenerator<Uint8Array> {
  const budget = createExpansionBudget(rpc.maxBytes);
  for await (const envelope of splitEnvelopes(incoming, rpc.maxBytes)) {
    await takeTurn();
    const bytes = envelope.subarray(prefixBytes);
    if (!readCompressedFlag(envelope)) {
      parseMessage(rpc.method, form.codec, bytes, rpc);
      yield envelope;
      continue;
    }
    if (compression === undefined) throw compressionInvalid();
    budget.addCompressed(envelope.length);
    const plain = await decompress(compression, bytes, rpc.maxBytes);
    budget.addExpanded(plain.length);
    parseMessage(rpc.method, form.codec, plain, rpc);
    yield packMessage(plain);
  }
}

/**
 * Passes on the messages of an HTTP/2 request. If the request announced more bytes than were read, discards
 * the rest, for a limited time, before the answer is sent: a request shorter than announced is reset (RFC
 * 9113, section 8.1.1), and the client would lose the answer.
 */
async function* readWhole(
  incoming: IncomingBody,
  messages: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* messages;
  } finally {
    if (incoming.headers.has("content-length")) await discard(incoming);
  }
}

async function discard(incoming: IncomingBody): Promise<void> {
  try {
    for await (const _chunk of withinTime(incoming, drainRequestMs));
  } catch {
    // A slow client still gets its answer. A disconnected client needs none.
  }
}
