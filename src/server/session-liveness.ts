/**
 * Ends HTTP/2 connections that are idle, or whose peers are gone. Node has such a timeout only for HTTP/1.1. Node's
 * sessions can also wait without end: after a TLS write that fails at once, later writes never end, and the session does
 * not read that its peer has left (nodejs/node#55804, seen with 26.10).
 */
import type http2 from "node:http2";
import type { Socket } from "node:net";
import type { UnreadResponses } from "./unread-responses.ts";

/** Milliseconds after which a silent connection without streams is closed. */
const idleMs = 300_000;

/**
 * Watches a session until its connection closes.
 *
 * @param silenceMs milliseconds of silence after which a peer with open streams must answer a PING
 * @param unread drops the connection if the peer does not, and if only the session has ended
 */
export function watchLiveness(
  session: http2.ServerHttp2Session,
  socket: Socket,
  { silenceMs, unread }: { readonly silenceMs: number; readonly unread: UnreadResponses },
): void {
  const streams = new Set<http2.ServerHttp2Stream>();
  let isIdle = false;
  let isAwaited = false;
  const watched = {
    pendingBytes: () => (isAwaited || session.destroyed ? 1 : 0),
    drop: () => void socket.destroy(),
  };
  unread.watch(watched);
  socket.once("close", () => unread.forget(watched));
  const onHeard = (): void => {
    isAwaited = false;
    session.setTimeout(silenceMs);
  };
  // One function for all streams of the session.
  function onClose(this: http2.ServerHttp2Stream): void {
    streams.delete(this);
  }
  session.on("stream", (stream) => {
    streams.add(stream);
    stream.on("close", onClose);
    if (!isIdle) return;
    isIdle = false;
    session.setTimeout(silenceMs);
  });
  // Frames start the time again, except answers to PING.
  session.on("timeout", () => {
    if (session.closed) {
      // Node sends no PING any more. Nothing is left to do here but to send the ends of streams.
      isAwaited = [...streams].every(({ destroyed, writableEnded }) => destroyed || writableEnded);
    } else if (streams.size > 0) {
      isAwaited = true;
      session.ping(onHeard);
    } else if (isIdle) {
      session.close();
    } else {
      isIdle = true;
      session.setTimeout(Math.max(idleMs - silenceMs, 1));
    }
  });
  session.setTimeout(silenceMs);
}
