/**
 * Ends connections without losing a request that a client has already sent.
 *
 * Bytes may wait in the buffers of the system, and connections in its queue, where Node does not see them. A close
 * would reset them.
 */
import type http2 from "node:http2";
import net from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { TLSSocket } from "node:tls";

/**
 * Milliseconds that idle connections stay open when the server stops: longer than a request is on its way. In HTTP/1.1
 * a server cannot say that it is about to close.
 */
export const graceMs = 250;

/** Turns of the event loop that bring nothing new: one to look, and two for what the first one began. */
const quietTurns = 3;
/** Turns at most. Node accepts one connection in a turn, and the system's queue holds 511. */
const maxTurns = 600;

/** Takes the connections, and the requests, that the system has received, and then no more connections. */
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
  // The close of the servers of node:http and node:http2 would end idle connections too.
  const closed = new Promise<void>((resolve) => {
    net.Server.prototype.close.call(server, () => resolve());
  });
  return { closed };
}

/** Waits for a promise, but not longer than idle connections stay open. Then everything that has arrived is read. */
export async function waitForGrace(closed: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, graceMs);
  await Promise.race([closed, promise]);
  clearTimeout(timer);
  // After a pause of the event loop, timers come before the bytes that arrived meanwhile.
  for (let turns = 0; turns < quietTurns; turns += 1) await turn();
}

/**
 * Ends an HTTP/2 session in two steps (RFC 9113, section 6.8): says that the client should open no more streams, and,
 * after a round trip, which was the last one. Streams that it had opened until then are served.
 *
 * @param socket the session's connection
 */
export function endSession(session: http2.ServerHttp2Session, socket: net.Socket | undefined): void {
  if (session.closed || session.destroyed) return;
  // Node's own GOAWAY makes it ignore later streams, whatever number it names. TLS takes only one write at a time, and
  // Node's session writes past the socket: there, a call that was opened during the round trip is refused as one that
  // was not begun, which clients may repeat.
  if (socket !== undefined && !(socket instanceof TLSSocket)) socket.write(firstGoaway);
  session.ping(() => session.close());
}

/** GOAWAY with the highest stream number and NO_ERROR. */
const firstGoaway = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
