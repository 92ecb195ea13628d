/** Node's response of HTTP/2, which ends in the frame of what it has to say last. */
import http2, { type OutgoingHttpHeaders } from "node:http2";

/**
 * Node sends the headers of a response as soon as it has them, and ends the stream with an empty DATA frame if no
 * body follows. gRPC clients take a status in the headers only if the same frame ends the stream. This response keeps
 * its headers until the first byte of the body, the trailers or the end.
 *
 * In the same way it keeps the last envelope of Connect and gRPC-Web, which has the outcome, until the end. A client that
 * reads it stops sending, some (connect-go) with fewer bytes than they announced; nghttp2 then resets the stream, unless
 * it has ended.
 */
export class Http2Response extends http2.Http2ServerResponse {
  #hasTrailers = false;
  #isSending = false;
  #lastEnvelope: Uint8Array | undefined;

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

  /** Node ends the stream in the frame of the headers if they go out only now. */
  override end(...chunk: unknown[]): this {
    if (this.#hasTrailers) this.flushHeaders();
    this.#isSending = true;
    if (this.#lastEnvelope !== undefined) return super.end(this.#lastEnvelope);
    const [first, ...others] = chunk;
    const isEmpty = first instanceof Uint8Array && first.length === 0;
    const written = isEmpty ? [undefined, ...others] : chunk;
    return super.end(...(written as Parameters<http2.Http2ServerResponse["end"]>));
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
