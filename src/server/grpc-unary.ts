/**
 * Serves unary gRPC calls with the binary codec directly from HTTP/2 streams.
 *
 * Connect could serve these calls as well. But it treats a unary call as a stream of one message, which costs four
 * times as much as the rest of the call (test/bench measures it). This path does the same with one buffer in each
 * direction. Streams, gRPC-Web, Connect and gRPC with JSON go to Connect.
 */
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { type Message, toBinary } from "@bufbuild/protobuf";
import type { ConnectError, Interceptor, MethodImplSpec } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { bodyTooLarge, refuse, toConnectError } from "../errors.ts";
import { CallHeaders } from "../protocol/call-headers.ts";
import { CallValues, clientKey } from "../protocol/call-values.ts";
import type { StructureLimits } from "../protocol/structure-limits.ts";
import { callTooSlow, parseGrpcTimeout } from "../protocol/timeout.ts";
import {
  composeUnary,
  RunningCalls,
  UnaryCall,
  type UnaryHandler,
  type UnarySpec,
} from "../protocol/unary-call.ts";
import type { WireCodec, WireCodecs } from "../protocol/wire-codec.ts";
import { nameClient, Ticket } from "./admission.ts";
import { accountKey } from "./byte-budget.ts";
import type { ReadClient } from "./client-address.ts";
import { decompress, findCompression } from "./compression.ts";
import { renderTrailersOnly, sendTrailersOnly } from "./failures.ts";
import type { Intake } from "./intake.ts";
import { compressionInvalid } from "./interceptors/errors.ts";
import { packMessage, prefixBytes, readMessage, unpackMessage } from "./message-frame.ts";
import type { StreamHandler } from "./node-http.ts";
import { endInPieces } from "./rest.ts";
import { awaitsAnswer, breakOff, sendHead, sendTrailers } from "./stream-answers.ts";
import type { UnreadResponses, Writing } from "./unread-responses.ts";

/** The methods, limits and hooks of this path. */
export interface GrpcUnaryOptions {
  readonly specs: Iterable<MethodImplSpec>;
  readonly codecs?: WireCodecs | undefined;
  readonly interceptors: Interceptor[];
  /** Bytes of a message of a method, compressed or not. */
  readonly maxBytesOf: (method: UnarySpec["method"]) => number;
  /** Milliseconds for a complete request to arrive. */
  readonly maxReceiveMs: number;
  /** Milliseconds that a handler may take. */
  readonly maxCallMs: number;
  /** Limits of the structure of a message. */
  readonly structure: StructureLimits;
  readonly shutdownSignal: AbortSignal;
  readonly readClient: ReadClient;
  readonly intake: Pick<Intake, "admit">;
  readonly unread: UnreadResponses;
  /** Receives every error that is sent to a caller. */
  readonly onError: (error: ConnectError) => void;
}

const contentType = "application/grpc+proto";
const withTrailers = { waitForTrailers: true };

/** Shared by all canceled calls, because an error with a stack for each call is costly. */
const canceled = refuse("CALL_CANCELED", "the caller canceled the call");

/** The options that all calls of a server share. */
interface Setup extends GrpcUnaryOptions {
  readonly running: RunningCalls;
}

/** A method that this path serves. */
interface Served {
  readonly spec: UnarySpec;
  readonly handle: UnaryHandler;
  readonly maxBytes: number;
  readonly codec: WireCodec | undefined;
}

/** Creates the stream handler. It skips every stream that is not a unary gRPC call of a known RPC. */
export function createGrpcUnaryHandler(options: GrpcUnaryOptions): StreamHandler {
  const served = new Map<string, Served>();
  for (const spec of options.specs) {
    if (spec.kind !== "unary") continue;
    const handle = composeUnary(spec, options.interceptors);
    const maxBytes = options.maxBytesOf(spec.method);
    served.set(`/${spec.method.parent.typeName}/${spec.method.name}`, {
      spec,
      handle,
      maxBytes,
      codec: options.codecs?.get(spec.method),
    });
  }
  const setup: Setup = { ...options, running: new RunningCalls(options.shutdownSignal) };
  return (stream, headers) => {
    const found = served.get(headers[":path"] ?? "");
    if (found === undefined || headers[":method"] !== "POST" || !isBinaryGrpc(headers["content-type"]))
      return false;
    new GrpcUnaryStream(stream, headers, found, setup).start();
    return true;
  };
}

function isBinaryGrpc(type: string | undefined): boolean {
  return type === "application/grpc" || type === contentType;
}

/**
 * Node keeps the object of a closed stream until the next full collection of garbage, with all that it refers to. A
 * stream therefore refers to its call only under this key, and only until it closes.
 */
const callKey = Symbol("call");

type CallingStream = ServerHttp2Stream & { [callKey]?: GrpcUnaryStream | undefined };

function onClose(this: CallingStream): void {
  this[callKey]?.close();
  this[callKey] = undefined;
}

function onData(this: CallingStream, chunk: Buffer): void {
  this[callKey]?.take(chunk);
}

function onEnd(this: CallingStream): void {
  this[callKey]?.complete();
}

function onWantTrailers(this: CallingStream): void {
  this[callKey]?.sendTrailers();
}

/** The stream of one call. */
class GrpcUnaryStream implements Writing {
  readonly #stream: CallingStream;
  readonly #headers: IncomingHttpHeaders;
  readonly #served: Served;
  readonly #setup: Setup;
  readonly #ticket = new Ticket();
  readonly #call: UnaryCall;
  readonly #whole = Promise.withResolvers<Buffer>();
  readonly #chunks: Buffer[] = [];
  #arrivedBytes = 0;

  constructor(stream: CallingStream, headers: IncomingHttpHeaders, served: Served, setup: Setup) {
    this.#stream = stream;
    this.#headers = headers;
    this.#served = served;
    this.#setup = setup;
    const client = setup.readClient(stream.session?.socket?.remoteAddress, headers["x-forwarded-for"]);
    this.#call = new UnaryCall(
      {
        method: served.spec.method,
        protocolName: "grpc",
        requestMethod: "POST",
        url: `${headers[":scheme"] ?? "http"}://${headers[":authority"] ?? ""}${headers[":path"]}`,
        requestHeader: new CallHeaders(headers),
        values: new CallValues().set(clientKey, client),
      },
      setup.running,
    );
    setup.unread.watch(this);
  }

  client(): string {
    return nameClient(this.#call.values);
  }

  pendingBytes(): number {
    return this.#stream.writableLength;
  }

  arrivedBytes(): number {
    return this.#stream.readableLength;
  }

  drop(): void {
    this.#stream.destroy();
  }

  start(): void {
    this.#stream[callKey] = this;
    this.#stream.on("close", onClose);
    this.#run().catch((error: unknown) => this.#breakOff(error));
  }

  async #run(): Promise<void> {
    const call = this.#call;
    try {
      const admitting = this.#admit();
      if (admitting !== undefined) await admitting;
      this.#limitReceiving();
      const compression = findCompression(this.#headers["grpc-encoding"]?.toString(), "grpc-accept-encoding");
      const { isCompressed, bytes } = unpackMessage(await this.#receive());
      const request = this.#read(isCompressed ? await this.#expand(bytes, compression) : bytes);
      const { maxCallMs } = this.#setup;
      call.endWithin(maxCallMs, () => callTooSlow(maxCallMs));
      this.#respond(await this.#served.handle(call, request));
    } catch (thrown) {
      const error = toConnectError(thrown);
      this.#setup.onError(error);
      this.#fail(error);
    } finally {
      call.finish();
    }
  }

  close(): void {
    this.#ticket.close();
    this.#setup.unread.forget(this);
    // Node itself ends the writable side of a stream that the caller resets.
    if (this.#stream.aborted || !this.#stream.writableFinished) this.#call.abort(canceled);
  }

  /** Admits the call before the body is read. Does not wait if there is no token to check. */
  #admit(): Promise<void> | undefined {
    const { method, values, requestHeader: header } = this.#call;
    const { authorization = null } = this.#headers;
    return this.#setup.intake.admit({ method, authorization, values, ticket: this.#ticket, header });
  }

  #limitReceiving(): void {
    const timeout = this.#headers["grpc-timeout"];
    if (typeof timeout === "string") this.#call.setDeadline(parseGrpcTimeout(timeout));
    const { maxReceiveMs } = this.#setup;
    const tooSlow = () =>
      refuse(
        "REQUEST_TOO_SLOW",
        `the request did not arrive completely within ${maxReceiveMs / 1000} seconds`,
      );
    this.#call.endWithin(maxReceiveMs, tooSlow);
  }

  #read(bytes: Uint8Array): Message {
    const { spec, codec } = this.#served;
    const read = codec?.read(bytes);
    if (read !== undefined) return read;
    return readMessage(spec.method.input, bytes, this.#setup.structure);
  }

  #receive(): Promise<Buffer> {
    this.#stream.on("data", onData);
    this.#stream.on("end", onEnd);
    return this.#call.waitFor(this.#whole);
  }

  /** Takes a piece of the request. */
  take(chunk: Buffer): void {
    const { maxBytes } = this.#served;
    try {
      this.#call.values.get(accountKey)?.charge(chunk.length);
    } catch (error) {
      this.#whole.reject(error);
      return;
    }
    const before = this.#arrivedBytes;
    this.#arrivedBytes += chunk.length;
    this.#chunks.push(chunk);
    let announced = this.#arrivedBytes;
    // The prefix announces the length, so a too large message is refused before it arrives.
    if (before < prefixBytes && announced >= prefixBytes)
      announced = Math.max(announced, prefixBytes + this.#received().readUInt32BE(1));
    if (announced > maxBytes + prefixBytes) this.#whole.reject(bodyTooLarge(maxBytes));
  }

  /** Ends the request. Node also ends one that was cut, before the stream closes. */
  complete(): void {
    if (this.#stream.aborted) this.#whole.reject(canceled);
    else this.#whole.resolve(this.#received());
  }

  #received(): Buffer {
    const [first, ...others] = this.#chunks;
    return first !== undefined && others.length === 0
      ? first
      : Buffer.concat(this.#chunks, this.#arrivedBytes);
  }

  async #expand(message: Uint8Array, compression: Compression | undefined): Promise<Uint8Array> {
    if (compression === undefined) throw compressionInvalid();
    const expanded = await decompress(compression, message, this.#served.maxBytes);
    this.#call.values.get(accountKey)?.charge(expanded.length);
    return expanded;
  }

  #respond(message: Message): void {
    const stream = this.#stream;
    if (!awaitsAnswer(stream)) return;
    const { method, responseHeader } = this.#call;
    const body = this.#served.codec?.write(message) ?? toBinary(method.output, message);
    sendHead(stream, responseHeader.toList(":status", "200", "content-type", contentType), withTrailers);
    stream.on("wantTrailers", onWantTrailers);
    endInPieces(stream, packMessage(body));
  }

  sendTrailers(): void {
    try {
      sendTrailers(this.#stream, { "grpc-status": "0", ...this.#call.responseTrailer.toNode() });
    } catch (error) {
      this.#breakOff(error);
    }
  }

  /** Answers with only a status ("Trailers-Only"). */
  #fail(error: ConnectError): void {
    const { responseHeader, responseTrailer } = this.#call;
    const header = { "content-type": contentType, ...responseHeader.toNode() };
    sendTrailersOnly(this.#stream, { ...header, ...renderTrailersOnly(error, responseTrailer) });
  }

  /** Ends a call whose answer cannot be written, as with a header that a handler set wrongly. */
  #breakOff(error: unknown): void {
    this.#setup.onError(toConnectError(error));
    breakOff(this.#stream);
  }
}
