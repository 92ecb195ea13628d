/** Detects whether a connection uses HTTP/1.1 or HTTP/2. */
import type http from "node:http";
import type http2 from "node:http2";
import type { Socket } from "node:net";
import type { ListenerOptions } from "./listener-options.ts";
import { stayPaused } from "./node-workarounds.ts";

/** The HTTP/2 preface starts with "PRI", which is not an HTTP/1.1 method. */
const preface = Buffer.from("PRI");

/**
 * Reads the first bytes of every connection and passes it to the server for its protocol.
 *
 * @param undecided receives the connections whose protocol is not known yet
 */
export function chooseProtocol(
  http1Server: http.Server,
  http2Server: http2.Http2Server,
  undecided: Set<Socket>,
  { tls, maxHeaderMs, unread }: ListenerOptions,
): void {
  const event = tls === undefined ? "connection" : "secureConnection";
  const acceptHttp1 = http1Server.listeners(event);
  http1Server.removeAllListeners(event);
  http1Server.on(event, (socket: Socket) => {
    const watched = unread.watch({
      pendingBytes: () => socket.writableLength,
      writtenBytes: () => socket.bytesWritten,
      drop: () => void socket.destroy(),
    });
    socket.once("close", () => watched.leave());
    undecided.add(socket);
    const forget = (): void => void undecided.delete(socket);
    socket.once("close", forget);
    const onEarlyError = (): void => void socket.destroy();
    socket.once("error", onEarlyError);
    socket.setTimeout(maxHeaderMs, onEarlyError);
    let seen = Buffer.alloc(0);
    const inspect = (): void => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      seen = Buffer.concat([seen, chunk]);
      if (seen.length < preface.length && preface.subarray(0, seen.length).equals(seen)) return;
      socket.off("readable", inspect);
      socket.off("error", onEarlyError);
      socket.off("timeout", onEarlyError);
      socket.off("end", onEarlyError);
      socket.off("close", forget);
      forget();
      socket.setTimeout(0);
      // Put the bytes back for the server that takes over.
      socket.unshift(seen);
      if (seen.subarray(0, preface.length).equals(preface)) {
        // An HTTP/1.1 client may stop sending and still read a refusal. An HTTP/2 session ends with either
        // side.
        socket.allowHalfOpen = false;
        http2Server.emit("connection", socket);
      } else {
        for (const accept of acceptHttp1) accept.call(http1Server, socket);
        if (tls !== undefined) stayPaused(socket);
      }
    };
    socket.on("readable", inspect);
    socket.once("end", onEarlyError);
  });
}
