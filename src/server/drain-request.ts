/** Lets a peer read its answer although it has not finished its request. */
import http2 from "node:http2";
import { type IncomingBody, withinTime } from "../transcoding/body.ts";
import type { NodeRequest, NodeResponse } from "./node-http.ts";

/** Milliseconds that a connection or a stream stays open after its last answer. */
export const drainRequestMs = 2000;

/**
 * Takes in what a peer still sends after its answer, for a while. To reset the stream at once would be in order
 * (RFC 9113, section 8.1), but there are clients that then throw the answer away.
 */
export function discardRest(stream: http2.ServerHttp2Stream): void {
  // Whoever has read so far reads no more, and would hold back what is left.
  stream.removeAllListeners("data");
  stream.resume();
  const timer = setTimeout(() => stream.close(http2.constants.NGHTTP2_NO_ERROR), drainRequestMs);
  timer.unref();
  stream.once("close", () => clearTimeout(timer));
}

/**
 * Does so for a request that is going to be answered.
 *
 * In HTTP/1.1 the next request comes after what is left of this one. Node reads on by itself only if nobody has
 * begun to; left half read, a connection would stand still until it is closed as idle. Who sends on and on, a byte
 * a second, would keep it for ever.
 *
 * @param maxReceiveMs milliseconds that the rest of a request of HTTP/1.1 may take
 */
export function drainAfterAnswer(req: NodeRequest, res: NodeResponse, maxReceiveMs: number): void {
  const { stream } = req;
  if (stream === undefined) {
    // Before Node's own listener, which closes the connection of a last answer.
    res.prependOnceListener("finish", () => {
      if (!req.complete && req.socket !== null) closeAfterRequest(req);
    });
    res.once("finish", () => {
      if (req.complete) return;
      readOn(req);
      const timer = setTimeout(() => req.socket.destroy(), maxReceiveMs).unref();
      for (const end of ["end", "close"]) req.once(end, () => clearTimeout(timer));
    });
    return;
  }
  if (stream.endAfterHeaders) return;
  // Node resets a stream that is answered before anybody read from it.
  req.read(0);
  // Not the response's event of this name, which comes when the stream is closed; and a stream that holds bytes
  // that nobody reads does not close, nor does its connection.
  stream.once("finish", () => {
    if (!stream.readableEnded) discardRest(stream);
  });
}

/**
 * Has the connection of a last answer ("Connection: close") closed once the request is there as well, or the peer
 * has been silent for a while. Until then only our half is closed: to close both while the peer still sends would
 * reset the connection, and the reset would take the answer with it (RFC 9112, section 9.6).
 */
function closeAfterRequest(req: NodeRequest): void {
  const { socket } = req;
  const closeNow = socket.destroySoon.bind(socket);
  socket.destroySoon = () => {
    socket.end();
    socket.setTimeout(drainRequestMs, () => socket.destroy());
    req.once("end", closeNow);
  };
}

/** Not resume(): that has no effect while an iterator, even one that was left, listens for "readable". */
function readOn(req: NodeRequest): void {
  const discard = (): void => {
    while (req.read() !== null);
  };
  req.on("readable", discard);
  discard();
}

/**
 * Passes on what is read of a request of HTTP/2. If that is not all that the request announced, the rest is taken
 * in, for a while, before the answer goes out.
 *
 * connect-go ends a request short as soon as it sees the last message of the answer, a moment before Node says,
 * in a frame of its own, that it was the last. A request shorter than announced is reset (RFC 9113, section
 * 8.1.1), and the reset would take the answer with it.
 */
export async function* readWhole(
  body: IncomingBody,
  messages: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* messages;
  } finally {
    if (body.headers.has("content-length")) await discard(body);
  }
}

async function discard(body: IncomingBody): Promise<void> {
  try {
    for await (const _chunk of withinTime(body, drainRequestMs));
  } catch {
    // Too slow, or gone: it gets its answer all the same, or needs none.
  }
}
