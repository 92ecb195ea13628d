/** Lets a peer read its answer even if it has not finished its request. */
import http2 from "node:http2";
import { type IncomingBody, withinTime } from "../transcoding/body.ts";
import type { NodeRequest, NodeResponse } from "./node-http.ts";

/** Milliseconds that a connection or a stream stays open after its last answer. */
export const drainRequestMs = 2000;

/**
 * Discards what a peer still sends after its answer, for a while. RFC 9113, section 8.1, permits an immediate reset,
 * but some clients then discard the answer.
 */
export function discardRest(stream: http2.ServerHttp2Stream): void {
  // The previous readers have stopped reading, and their listeners would hold back the rest.
  stream.removeAllListeners("data");
  stream.resume();
  const timer = setTimeout(() => stream.close(http2.constants.NGHTTP2_NO_ERROR), drainRequestMs);
  timer.unref();
  stream.once("close", () => clearTimeout(timer));
}

/**
 * Discards the rest of a request once its answer is written.
 *
 * In HTTP/1.1 the next request follows the rest of this one. Node discards the rest only if no code has started to
 * read it. A half-read connection would stall until the idle timeout. A client that sends one byte a second would
 * hold it forever, so the time is limited.
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
  // Node resets a stream that is answered before any code reads from it.
  req.read(0);
  // The response emits its own "finish" only when the stream closes. A stream with unread bytes never closes, and
  // neither does its connection.
  stream.once("finish", () => {
    if (!stream.readableEnded) discardRest(stream);
  });
}

/**
 * Closes the connection of a last answer ("Connection: close") when the request is complete, or when the peer has
 * been silent for a while. Until then it closes only our half. Closing both halves while the peer still sends would
 * reset the connection, and the peer would lose the answer (RFC 9112, section 9.6).
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

/** Does not use resume(), which has no effect while an iterator, even an abandoned one, listens for "readable". */
function readOn(req: NodeRequest): void {
  const discard = (): void => {
    while (req.read() !== null);
  };
  req.on("readable", discard);
  discard();
}

/**
 * Passes on the messages of an HTTP/2 request. If the request announced more bytes than were read, discards the
 * rest, for a while, before the answer is sent.
 *
 * connect-go ends a request early when it sees the last message of the answer, just before Node ends the stream in
 * a separate frame. A request shorter than announced is reset (RFC 9113, section 8.1.1), and the client would lose
 * the answer.
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
    // A slow client still gets its answer. A client that is gone needs none.
  }
}
