/**
 * Closes HTTP/2 connections that are idle or whose peers have disappeared. Node has such a timeout only for
 * HTTP/1.1. Node's sessions can also stop reading, and then never notice a disconnect: after a TLS write that
 * fails at once (nodejs/node#55804, seen with 26.10), and after a peer error while a stream is open.
 */
import type http2 from "node:http2";
import type { Socket } from "node:net";
import { drainRequestMs } from "./node-workarounds.ts";
import type { UnreadResponses } from "./unread-responses.ts";

/** Milliseconds after which a silent connection without streams is closed. */
const idleMs = 300_000;

interface LivenessDeps {
  /** Milliseconds of silence after which a peer with open streams must prove that it is alive. */
  readonly silenceMs: number;
  /** Drops the connection if the peer does not respond, or if only the session has ended. */
  readonly unread: UnreadResponses;
}

/** A session, notified of its streams. */
export interface LiveSession {
  readonly socket: Socket;
  streamOpened(): void;
  streamClosed(): void;
  /** Ends the session once its streams have closed. */
  close(): void;
}

/** Watches a session until its connection closes. */
export function watchLiveness(
  session: http2.ServerHttp2Session,
  socket: Socket,
  { silenceMs, unread }: LivenessDeps,
): LiveSession {
  let open = 0;
  let isIdle = false;
  let isAwaited = false;
  const watched = unread.watch({
    pendingBytes: () => (isAwaited || session.destroyed ? 1 : 0),
    drop: () => void socket.destroy(),
  });
  socket.once("close", () => watched.leave());
  // A session that has closed ends only our half of the connection. The peer may leave its half open.
  socket.once("finish", () => socket.setTimeout(drainRequestMs, () => socket.destroy()));
  const onHeard = (): void => {
    isAwaited = false;
    session.setTimeout(silenceMs);
  };
  const close = (): void => {
    session.close();
    // Node waits for the rest of a frame or request head that has begun, which may never arrive.
    setImmediate(() => {
      if (open === 0) session.destroy();
    });
  };
  // Any frame except a PING acknowledgement restarts the timeout.
  session.on("timeout", () => {
    if (open > 0 || session.closed) {
      isAwaited = true;
      // Node sends no PING on a closing session. SETTINGS must be acknowledged too.
      if (session.closed) session.settings({}, onHeard);
      else session.ping(onHeard);
    } else if (isIdle) {
      close();
    } else {
      isIdle = true;
      session.setTimeout(Math.max(idleMs - silenceMs, 1));
    }
  });
  session.setTimeout(silenceMs);
  return {
    socket,
    close,
    streamOpened() {
      open += 1;
      if (!isIdle) return;
      isIdle = false;
      session.setTimeout(silenceMs);
    },
    streamClosed() {
      open -= 1;
    },
  };
}
