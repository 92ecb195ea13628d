/** Code that depends on Node internals, because no public API exists. Checked with Node 26.10. */
import type http from "node:http";
import type http2 from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** Milliseconds that a connection or stream stays open after its last answer. */
export const drainRequestMs = 2000;

/**
 * Closes the connection of a last answer ("Connection: close") once the request is complete or the peer has
 * been silent for a while. Until then it closes only our half: closing both while the peer still sends would
 * reset the connection, and the peer would lose the answer (RFC 9112, section 9.6). Node calls `destroySoon`
 * for it (resOnFinish in lib/_http_server.js).
 */
export function closeAfterRequest(req: http.IncomingMessage): void {
  const { socket } = req;
  const closeNow = socket.destroySoon.bind(socket);
  socket.destroySoon = () => {
    socket.end();
    socket.setTimeout(drainRequestMs, () => socket.destroy());
    req.once("end", closeNow);
  };
}

/**
 * Discards what arrives on a socket whose parser has failed. node:http may have stopped reading because of an
 * unread body, and a "data" listener detaches the parser from the socket (unconsume in lib/_http_server.js).
 * Nothing would resume reading, and the server would not notice a disconnect. Pushing an empty chunk makes
 * the stream read on.
 */
export function discardRest(socket: Duplex): void {
  // Removes Node's own listener, which ends the process if data arrives while it has paused, and the guard
  // against that.
  socket.removeAllListeners("data");
  Reflect.deleteProperty(socket, "resume");
  socket.on("data", () => {});
  socket.resume();
  socket.push(Buffer.alloc(0));
}

/**
 * Replaces the Map of a session's streams (lib/internal/http2/core.js). Its old tables would retain every
 * closed stream until the next full garbage collection (src/calls/live-list.ts). Ours retains only an empty
 * box.
 */
export function forgetClosedStreams(session: http2.Http2Session): void {
  const key = Object.getOwnPropertySymbols(session).find(({ description }) => description === "state");
  const state: { streams?: { readonly size: number } } = key === undefined ? {} : Reflect.get(session, key);
  if (state.streams?.size === 0) state.streams = new StreamTable();
}

/** The part of Map that Node uses. */
class StreamTable {
  readonly #boxes = new Map<number, { stream: http2.Http2Stream | undefined }>();

  get size(): number {
    return this.#boxes.size;
  }

  get(id: number): http2.Http2Stream | undefined {
    return this.#boxes.get(id)?.stream;
  }

  set(id: number, stream: http2.Http2Stream): void {
    this.#boxes.set(id, { stream });
  }

  delete(id: number): boolean {
    const box = this.#boxes.get(id);
    if (box !== undefined) box.stream = undefined;
    return this.#boxes.delete(id);
  }

  forEach(visit: (stream: http2.Http2Stream) => void): void {
    for (const { stream } of this.#boxes.values()) if (stream !== undefined) visit(stream);
  }
}

/**
 * Lets only node:http resume a socket that it has paused. It pauses a connection whose answers are not read,
 * and ends the process if data arrives nevertheless (socketOnData in lib/_http_server.js). On a TLS socket, a
 * stream resumed for another reason would deliver data: for example when our own "readable" listener is
 * removed.
 */
export function stayPaused(socket: Socket & { _paused?: boolean }): void {
  const resume = socket.resume.bind(socket);
  socket.resume = () => (socket._paused === true ? socket : resume());
}
