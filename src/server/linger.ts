/** Lets a peer read its answer although it has not finished its request. */
import http2 from "node:http2";
import type { NodeRequest, NodeResponse } from "./node-http.ts";

/** Milliseconds that a connection or a stream stays open after its last answer. */
export const lingerMs = 2000;

/**
 * Takes in what a peer still sends after its answer, for a while. To reset the stream at once would be in order
 * (RFC 9113, section 8.1), but there are clients that then throw the answer away.
 */
export function discardRest(stream: http2.ServerHttp2Stream): void {
  stream.resume();
  const timer = setTimeout(() => stream.close(http2.constants.NGHTTP2_NO_ERROR), lingerMs);
  timer.unref();
  stream.once("close", () => clearTimeout(timer));
}

/** Does so for a request of HTTP/2 that is going to be answered; in HTTP/1.1 Node does it itself. */
export function lingerAfterAnswer(req: NodeRequest, res: NodeResponse): void {
  const { stream } = req;
  if (stream === undefined || stream.endAfterHeaders) return;
  // Node resets a stream that is answered before anybody read from it.
  req.read(0);
  res.once("finish", () => {
    if (!req.complete) discardRest(stream);
  });
}
