/**
 * Closes connections without losing a request that a client has already sent.
 *
 * Bytes may wait in system buffers, and connections in the accept queue, where Node does not see them.
 * Closing would reset them.
 */
import type http2 from "node:http2";
import net from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { TLSSocket } from "node:tls";

/**
 * Milliseconds that idle connections stay open when the server stops: longer than a request takes to arrive.
 * An HTTP/1.1 server cannot announce that it is about to close.
 */
export const graceMs = 250;

/** Event-loop turns without news before stopping: one to poll, and two for the work that it started. */
const quietTurns = 3;
/** Maximum event-loop turns. Node accepts one connection per turn, and the accept queue holds 511. */
const maxTurns = 600;

/** Accepts the connections and requests that the system has received, then stops accepting. */
export async function stopAccepting(server: net.Server): Promise<{ readonly closed: Promise<void> }> {
  let isQuiet = false;
  const onConnection = (): void => {
    isQuiet = false;
  };
  server.on("connection", onConnection);
  for (let turns = 0, quiet = 0; quiet < quietTurns && turns < maxTurns; turns += 1) {
    isQuiet = true;
    await turn();
    quiet = isQuiet ? quiet + 1 : 0;
  }
  server.off("connection", onConnection);
  // The close methods of node:http and node:http2 servers would end idle connections too.
  const closed = new Promise<void>((resolve) => {
    net.Server.prototype.close.call(server, () => resolve());
  });
  return { closed };
}

/**
 * Waits for a promise, at most for the grace period of idle connections. Then reads everything that has
 * arrived.
 */
export async function waitForGrace(closed: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, graceMs);
  await Promise.race([closed, promise]);
  clearTimeout(timer);
  // After the event loop was blocked, timers run before the bytes that arrived meanwhile.
  for (let turns = 0; turns < quietTurns; turns += 1) await turn();
}

/**
 * Ends an HTTP/2 session in two steps (RFC 9113, section 6.8): asks the client to open no more streams, and
 * after a round trip names the last stream. Streams opened until then are served.
 *
 * @param socket the session's connection
 */
export function endSession(session: http2.ServerHttp2Session, socket: net.Socket | undefined): void {
  if (session.closed || session.destroyed) return;
  // After its own GOAWAY, Node ignores later streams, whatever number the frame names. TLS allows only one
  // write at a time, and Node's session writes past the socket, so over TLS a call opened during the round
  // trip is refused as not begun, which clients may retry.
  if (socket !== undefined && !(socket instanceof TLSSocket)) socket.write(firstGoaway);
  session.ping(() => session.close());
}

/** GOAWAY with the highest stream number and NO_ERROR. */
const firstGoaway = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
