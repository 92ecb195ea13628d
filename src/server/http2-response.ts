/** Node's HTTP/2 response, changed to end the stream in its last frame with content. */
import http2, { type OutgoingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { awaitsAnswer, sendHead } from "./stream-answers.ts";

/**
 * Node sends the headers of a response as soon as it has them, and ends the stream with an empty DATA frame if no
 * body follows. gRPC clients accept a status in the headers only if the same frame ends the stream. This response
 * holds its headers until the first byte of the body, the trailers or the end.
 *
 * It also holds the last envelope of Connect and gRPC-Web, which has the outcome, until the end. A client that reads
 * this envelope stops sending. Some clients (connect-go) then send fewer bytes than they announced, and nghttp2 resets
 * the stream unless it has ended.
 */
export class Http2Response extends http2.Http2ServerResponse {
  #hasTrailers = false;
  #isSending = false;
  #lastEnvelope: Uint8Array | undefined;

  constructor(stream: ServerHttp2Stream) {
    super(stream);
    // Node's response to HEAD does not say that its stream has closed, unless it was ended before.
    if (this.req.method === "HEAD")
      stream.once("close", () => {
        if (!this.writableEnded) this.emit("close");
      });
  }

  override writeHead(statusCode: number, ...rest: unknown[]): this {
    if (this.#isSending) return super.writeHead(statusCode);
    this.statusCode = statusCode;
    const headers = rest.at(-1);
    if (typeof headers === "object" && headers !== null) this.#setHeaders(headers as OutgoingHttpHeaders);
    return this;
  }

  #setHeaders(headers: OutgoingHttpHeaders): void {
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) this.setHeader(name, value);
    }
  }

  flushHeaders(): void {
    this.#isSending = true;
    if (!this.headersSent) super.writeHead(this.statusCode);
  }

  /** Node's own throws for a stream that its caller has reset. */
  override writeContinue(): void {
    if (awaitsAnswer(this.stream)) super.writeContinue();
  }

  override addTrailers(trailers: OutgoingHttpHeaders): void {
    this.#hasTrailers = true;
    super.addTrailers(trailers);
  }

  override write(...chunk: unknown[]): boolean {
    const [first] = chunk;
    if (first instanceof Uint8Array && isLastEnvelope(first, this.getHeader("content-type"))) {
      this.#lastEnvelope = first;
      const onWritten = chunk.at(-1);
      if (typeof onWritten === "function") process.nextTick(() => onWritten());
      return true;
    }
    this.#isSending = true;
    return super.write(...(chunk as Parameters<http2.Http2ServerResponse["write"]>));
  }

  /** Node ends the stream in the HEADERS frame if the headers are sent only now. */
  override end(...chunk: unknown[]): this {
    if (this.#hasTrailers) this.flushHeaders();
    this.#isSending = true;
    const [first, ...others] = chunk;
    const body = this.#lastEnvelope ?? first;
    if (body instanceof Uint8Array && body.length > 0 && this.#sendWhole(body)) {
      const onEnd = others.at(-1);
      return typeof onEnd === "function" ? super.end(onEnd as () => void) : super.end();
    }
    if (this.#lastEnvelope !== undefined) super.write(this.#lastEnvelope);
    const isEmpty = first instanceof Uint8Array && first.length === 0;
    const written = isEmpty ? [undefined, ...others] : chunk;
    return super.end(...(written as Parameters<http2.Http2ServerResponse["end"]>));
  }

  /**
   * Sends headers and body, and ends the stream in the last frame of the body. Node's response always waits for
   * trailers, and ends the stream in a separate frame, a turn of the event loop later.
   *
   * @returns false if it cannot: the headers are sent, or there is no body to send
   */
  #sendWhole(body: Uint8Array): boolean {
    const { stream, statusCode } = this;
    if (this.req.method === "HEAD") return false;
    if (!sendHead(stream, { ...this.getHeaders(), ":status": statusCode })) return false;
    stream.end(body);
    return true;
  }
}

/** The flags of the envelopes that end streams: https://connectrpc.com/docs/protocol, and gRPC's PROTOCOL-WEB. */
const connectEnd = 0x02;
const grpcWebEnd = 0x80;

function isLastEnvelope([flags = 0]: Uint8Array, contentType: unknown): boolean {
  const type = String(contentType);
  if (type.startsWith("application/connect+")) return (flags & connectEnd) !== 0;
  return type.startsWith("application/grpc-web") && (flags & grpcWebEnd) !== 0;
}
