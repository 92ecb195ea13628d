/** Node's response of HTTP/2, which ends in one frame where nothing follows its headers. */
import http2, { type OutgoingHttpHeaders } from "node:http2";

/**
 * Node sends the headers of a response as soon as it has them, and ends the stream with an empty DATA frame if no
 * body follows. gRPC clients take a status in the headers only if the same frame ends the stream. This response keeps
 * its headers until the first byte of the body, the trailers or the end.
 */
export class Http2Response extends http2.Http2ServerResponse {
  #hasTrailers = false;
  #isSending = false;

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
    this.#isSending = true;
    return super.write(...(chunk as Parameters<http2.Http2ServerResponse["write"]>));
  }

  /** Node ends the stream in the frame of the headers if they go out only now. */
  override end(...chunk: unknown[]): this {
    if (this.#hasTrailers) this.flushHeaders();
    this.#isSending = true;
    const [first, ...others] = chunk;
    const isEmpty = first instanceof Uint8Array && first.length === 0;
    const written = isEmpty ? [undefined, ...others] : chunk;
    return super.end(...(written as Parameters<http2.Http2ServerResponse["end"]>));
  }
}
