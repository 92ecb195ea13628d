/**
 * Serves unary gRPC calls with the binary codec directly from HTTP/2 streams.
 *
 * Connect could serve these calls as well. But it treats a unary call as a stream of one message, which costs four
 * times as much as the rest of the call (test/bench measures it). This path does the same with one buffer in each
 * direction. Streams, gRPC-Web, Connect and gRPC with JSON go to Connect.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext, Interceptor, MethodImplSpec } from "@connectrpc/connect";
import { type ConnectError, createContextValues } from "@connectrpc/connect";
import { type Compression, compressedFlag, invokeUnaryImplementation } from "@connectrpc/connect/protocol";
import { bodyTooLarge, refuse, toConnectError } from "../errors.ts";
import { clientKey } from "../protocol/call-values.ts";
import type { StructureLimits } from "../protocol/structure-limits.ts";
import { parseGrpcTimeout } from "../protocol/timeout.ts";
import { scanMessage } from "../protocol/wire-structure.ts";
import { nameClient, Ticket } from "./admission.ts";
import { accountKey } from "./byte-budget.ts";
import type { ReadClient } from "./client-address.ts";
import { decompress, findCompression } from "./compression.ts";
import { renderTrailersOnly, sendTrailersOnly } from "./failures.ts";
import type { Intake } from "./intake.ts";
import { compressionInvalid, messageMalformed } from "./interceptors/errors.ts";
import { toHeaders, toNodeHeaders } from "./metadata.ts";
import type { StreamHandler } from "./node-http.ts";
import { endInPieces } from "./rest.ts";
import type { UnreadResponses } from "./unread-responses.ts";

/** The methods, limits and hooks of this path. */
export interface GrpcUnaryOptions {
  readonly specs: Iterable<MethodImplSpec>;
  readonly interceptors: Interceptor[];
  /** Bytes of a message of a method, compressed or not. */
  readonly maxBytesOf: (method: UnarySpec["method"]) => number;
  /** Milliseconds for a complete request to arrive. */
  readonly maxReceiveMs: number;
  /** Limits of the structure of a message. */
  readonly structure: StructureLimits;
  readonly shutdownSignal: AbortSignal;
  readonly readClient: ReadClient;
  readonly intake: Pick<Intake, "admit">;
  readonly unread: UnreadResponses;
  /** The reason to refuse a call before any work; undefined to accept it. */
  readonly findRefusal: (method: UnarySpec["method"]) => ConnectError | undefined;
  /** Receives every error that is sent to a caller. */
  readonly onError: (error: ConnectError) => void;
}

type UnarySpec = MethodImplSpec & { kind: "unary" };

const contentType = "application/grpc+proto";
/** Flags (1 byte) and length (4 bytes, big-endian) before a message (gRPC over HTTP/2, "Length-Prefixed-Message"). */
const prefixBytes = 5;

/** Shared by all ended calls, because an abort without a reason creates an error with a stack. */
const finished = new Error("the call has ended");
const canceled = refuse("CALL_CANCELED", "the caller canceled the call");

/** Creates the stream handler. It skips every stream that is not a unary gRPC call of a known RPC. */
export function createGrpcUnaryHandler(options: GrpcUnaryOptions): StreamHandler {
  const specs = new Map<string, UnarySpec>();
  const rendered = new WeakMap<ConnectError, OutgoingHttpHeaders>();
  const render = (error: ConnectError): OutgoingHttpHeaders => {
    const known = rendered.get(error) ?? renderTrailersOnly(error);
    rendered.set(error, known);
    return { "content-type": contentType, ...known };
  };
  for (const spec of options.specs) {
    if (spec.kind === "unary") specs.set(`/${spec.method.parent.typeName}/${spec.method.name}`, spec);
  }
  return (stream, headers) => {
    const spec = specs.get(headers[":path"] ?? "");
    if (spec === undefined || headers[":method"] !== "POST" || !isBinaryGrpc(headers["content-type"]))
      return false;
    const refusal = options.findRefusal(spec.method);
    if (refusal === undefined) void new GrpcUnaryCall(stream, headers, spec, options).run();
    else sendTrailersOnly(stream, render(refusal));
    return true;
  };
}

function isBinaryGrpc(type: string | undefined): boolean {
  return type === "application/grpc" || type === contentType;
}

/** One call: the context of its handler, and the state of its stream. */
class GrpcUnaryCall implements HandlerContext {
  readonly method: UnarySpec["method"];
  readonly service: HandlerContext["service"];
  readonly requestMethod = "POST";
  readonly protocolName = "grpc";
  readonly requestHeader: Headers;
  readonly responseHeader = new Headers();
  readonly responseTrailer = new Headers();
  readonly values = createContextValues();
  // All parts of a context are own properties, because Connect copies it for the handler and would omit getters.
  readonly signal: AbortSignal;
  readonly url: string;
  readonly #controller = new AbortController();
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #spec: UnarySpec;
  readonly #options: GrpcUnaryOptions;
  readonly #maxBytes: number;
  readonly #ticket = new Ticket();
  #endsAtMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    spec: UnarySpec,
    options: GrpcUnaryOptions,
  ) {
    this.#stream = stream;
    this.#headers = headers;
    this.#spec = spec;
    this.#options = options;
    this.#maxBytes = options.maxBytesOf(spec.method);
    this.method = spec.method;
    this.service = spec.method.parent;
    this.requestHeader = toHeaders(headers);
    const peer = stream.session?.socket?.remoteAddress;
    const client = options.readClient(peer, headers["x-forwarded-for"]);
    this.values.set(clientKey, client);
    this.#ticket.add(
      options.unread.watch({
        client: () => nameClient(this.values),
        pendingBytes: () => stream.writableLength,
        arrivedBytes: () => stream.readableLength,
        drop: () => stream.destroy(),
      }),
    );
    this.signal = this.#controller.signal;
    this.url = `${headers[":scheme"] ?? "http"}://${headers[":authority"] ?? ""}${headers[":path"]}`;
  }

  timeoutMs = (): number | undefined => this.#endsAtMs && this.#endsAtMs - performance.now();

  async run(): Promise<void> {
    const stream = this.#stream;
    const onShutdown = (): void => this.#controller.abort(this.#options.shutdownSignal.reason);
    this.#options.shutdownSignal.addEventListener("abort", onShutdown, { once: true });
    stream.on("error", () => {}); // A reset reaches the handler through "close".
    stream.on("close", () => {
      this.#ticket.close();
      // Node itself ends the writable side of a stream that the caller resets.
      if (stream.aborted || !stream.writableFinished) this.#controller.abort(canceled);
    });
    try {
      const admitting = this.#admit();
      if (admitting !== undefined) await admitting;
      this.#startTimer();
      const compression = findCompression(this.#headers["grpc-encoding"]?.toString(), "grpc-accept-encoding");
      const request = await this.#receive(compression);
      this.#restartTimer();
      this.#respond(await invokeUnaryImplementation(this.#spec, this, request, this.#options.interceptors));
    } catch (thrown) {
      const error = toConnectError(thrown);
      this.#options.onError(error);
      this.#fail(error);
    } finally {
      clearTimeout(this.#timer);
      this.#options.shutdownSignal.removeEventListener("abort", onShutdown);
      this.#controller.abort(finished);
    }
  }

  /** Admits the call before the body is read. Does not wait if there is no token to check. */
  #admit(): Promise<void> | undefined {
    return this.#options.intake.admit({
      method: this.method,
      authorization: this.#headers.authorization,
      values: this.values,
      ticket: this.#ticket,
      header: () => this.requestHeader,
    });
  }

  #startTimer(): void {
    const header = this.#headers["grpc-timeout"];
    const { maxReceiveMs } = this.#options;
    if (typeof header === "string") {
      const timeoutMs = parseGrpcTimeout(header);
      this.#endsAtMs = performance.now() + timeoutMs;
      if (timeoutMs <= maxReceiveMs) {
        this.#timer = setTimeout(this.#expire, timeoutMs);
        return;
      }
    }
    this.#timer = setTimeout(() => {
      const seconds = maxReceiveMs / 1000;
      this.#controller.abort(
        refuse("REQUEST_TOO_SLOW", `the request did not arrive completely within ${seconds} seconds`),
      );
    }, maxReceiveMs);
  }

  /** After the request has arrived, only the caller's deadline applies here. */
  #restartTimer(): void {
    clearTimeout(this.#timer);
    const leftMs = this.timeoutMs();
    if (leftMs === undefined) return;
    if (leftMs <= 0) this.#expire();
    else this.#timer = setTimeout(this.#expire, leftMs);
  }

  #expire = (): void => {
    this.#controller.abort(refuse("DEADLINE_EXCEEDED", "the call did not finish within its deadline"));
  };

  /** Reads the single message of the request. */
  async #receive(compression: Compression | undefined): Promise<Message> {
    const bytes = await this.#receiveBytes();
    if (bytes.length === 0)
      throw refuse("NOT_IMPLEMENTED", "the request has no message; a unary call has one");
    if (bytes.length < prefixBytes)
      throw refuse("BODY_INCOMPLETE", "the request ends within the prefix of a message");
    const flags = bytes.readUInt8(0);
    const end = prefixBytes + bytes.readUInt32BE(1);
    if (bytes.length < end)
      throw refuse("BODY_INCOMPLETE", `the request ends ${end - bytes.length} bytes too early`);
    if (bytes.length > end)
      throw refuse("NOT_IMPLEMENTED", "the request has several messages; a unary call has one");
    const message = bytes.subarray(prefixBytes, end);
    const plain = (flags & compressedFlag) === 0 ? message : await this.#expand(message, compression);
    scanMessage(this.method.input, plain, this.#options.structure);
    return parse(this.#spec, plain);
  }

  #receiveBytes(): Promise<Buffer> {
    const stream = this.#stream;
    const limit = this.#maxBytes + prefixBytes;
    const meter = this.values.get(accountKey);
    const chunks: Buffer[] = [];
    let size = 0;
    return new Promise((resolve, reject) => {
      const { signal } = this.#controller;
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      stream.on("data", (chunk: Buffer) => {
        try {
          meter?.charge(chunk.length);
        } catch (error) {
          reject(error);
          return;
        }
        size += chunk.length;
        chunks.push(chunk);
        // The prefix announces the length, so a too large message is refused before it arrives.
        const isPrefixNew = size >= prefixBytes && size - chunk.length < prefixBytes;
        const announced = isPrefixNew ? prefixBytes + Buffer.concat(chunks).readUInt32BE(1) : size;
        if (Math.max(size, announced) > limit) reject(bodyTooLarge(this.#maxBytes));
      });
      stream.on("end", () =>
        resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size)),
      );
    });
  }

  async #expand(message: Uint8Array, compression: Compression | undefined): Promise<Uint8Array> {
    if (compression === undefined) throw compressionInvalid();
    const expanded = await decompress(compression, message, this.#maxBytes);
    this.values.get(accountKey)?.charge(expanded.length);
    return expanded;
  }

  #respond(message: Message): void {
    const stream = this.#stream;
    if (stream.destroyed) return;
    const body = toBinary(this.method.output, message);
    const frame = Buffer.allocUnsafe(prefixBytes + body.length);
    frame.writeUInt8(0, 0);
    frame.writeUInt32BE(body.length, 1);
    frame.set(body, prefixBytes);
    stream.respond(
      { ":status": 200, "content-type": contentType, ...toNodeHeaders(this.responseHeader) },
      { waitForTrailers: true },
    );
    stream.once("wantTrailers", () => {
      stream.sendTrailers({ "grpc-status": "0", ...toNodeHeaders(this.responseTrailer) });
    });
    endInPieces(stream, frame);
  }

  /** Answers with only a status ("Trailers-Only"). */
  #fail(error: ConnectError): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.headersSent) return;
    const header = { "content-type": contentType, ...toNodeHeaders(this.responseHeader) };
    sendTrailersOnly(stream, { ...header, ...renderTrailersOnly(error, this.responseTrailer) });
  }
}

function parse(spec: UnarySpec, bytes: Uint8Array): Message {
  try {
    return fromBinary(spec.method.input, bytes);
  } catch (error) {
    throw messageMalformed(error instanceof Error ? error.message : String(error));
  }
}
