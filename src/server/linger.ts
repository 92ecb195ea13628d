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

/**
 * Does so for a request that is going to be answered.
 *
 * In HTTP/1.1 the next request comes after what is left of this one. Node reads on by itself only if nobody has
 * begun to; left half read, a connection would stand still until it is closed as idle.
 */
export function lingerAfterAnswer(req: NodeRequest, res: NodeResponse): void {
  const { stream } = req;
  if (stream === undefined) {
    res.once("finish", () => {
      if (!req.complete) readOn(req);
    });
    return;
  }
  if (stream.endAfterHeaders) return;
  // Node resets a stream that is answered before anybody read from it.
  req.read(0);
  res.once("finish", () => {
    if (!req.complete) discardRest(stream);
  });
}

/** Not resume(): that has no effect while an iterator, even one that was left, listens for "readable". */
function readOn(req: NodeRequest): void {
  const discard = (): void => {
    while (req.read() !== null);
  };
  req.on("readable", discard);
  discard();
}
