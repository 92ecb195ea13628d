/**
 * Answers on HTTP/2 streams. No other file sends headers or trailers on a stream. Node throws for a stream that its caller
 * has reset, which is "closed" before it is "destroyed", even if the reset came in the same segment as the request. These
 * functions do nothing then.
 */
import http2, {
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  type ServerStreamResponseOptions,
} from "node:http2";

/** Tells whether a caller still waits for the head of an answer. */
export function awaitsAnswer(stream: ServerHttp2Stream): boolean {
  return isOpen(stream) && !stream.headersSent;
}

function isOpen(stream: ServerHttp2Stream): boolean {
  return !stream.closed && !stream.destroyed;
}

/** Sends the head of an answer. @returns false if no caller waits for it */
export function sendHead(
  stream: ServerHttp2Stream,
  headers: OutgoingHttpHeaders | readonly string[],
  options?: ServerStreamResponseOptions,
): boolean {
  if (!awaitsAnswer(stream)) return false;
  stream.respond(headers, options);
  return true;
}

/** Ends an answer. To be called when the stream wants its trailers. */
export function sendTrailers(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  if (isOpen(stream)) stream.sendTrailers(trailers);
}

/** Resets a stream whose answer cannot be written. */
export function breakOff(stream: ServerHttp2Stream): void {
  stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
}
