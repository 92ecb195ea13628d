/**
 * One port for HTTP/1.1 and HTTP/2, with or without TLS.
 *
 * The HTTP/1.1 server owns the port. It reads the first bytes of each connection. A connection that begins
 * with the HTTP/2 preface (RFC 9113, section 3.4) goes to an HTTP/2 server, which does not listen itself.
 * With TLS, the client must use the protocol that it has negotiated (ALPN).
 */
import type http from "node:http";
import type http2 from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { type TLSSocket, Server as TlsServer } from "node:tls";
import { chooseProtocol } from "./choose-protocol.ts";
import { moveOffers } from "./client-hello.ts";
import { containErrors } from "./connection-errors.ts";
import { endSession, stopAccepting, waitForGrace } from "./drain-connections.ts";
import { Http1Exchange } from "./exchange.ts";
import { Http1Pipelines } from "./http1-pipelines.ts";
import { createHttp1Server, toNodeTls } from "./http1-server.ts";
import { createHttp2Server } from "./http2-server.ts";
import type { ListenerOptions } from "./listener-options.ts";
import type { LiveSession } from "./session-liveness.ts";
import type { TlsOptions } from "./tls.ts";

/** A port and its connections. */
export interface Listener {
  /**
   * Binds; port 0 picks a free one.
   *
   * @param options.reusePort whether other programs may listen on the port too
   */
  listen(port: number, host: string, options?: { readonly reusePort?: boolean }): Promise<AddressInfo>;
  /** Uses new certificates from the next connection on. */
  renewTls(tls: TlsOptions): void;
  /**
   * Stops accepting, sends GOAWAY to HTTP/2 clients, and closes connections once they are idle. Answers all
   * requests sent before. Resolves when all connections are closed.
   */
  drain(): Promise<void>;
  /** Closes all connections at once. */
  destroy(): void;
}

/**
 * Maximum pipelined requests per HTTP/1.1 connection. Node reads 64 KB at a time, which can be two thousand
 * requests, and holds them all. RFC 9112, section 9.3.2: a client retries unanswered requests.
 */
const maxPipelined = 100;

export function createListener(options: ListenerOptions): Listener {
  let drained: Promise<void> | undefined;
  /** Whether the grace period of idle connections has passed. */
  let isGraceOver = false;
  const sessions = new Map<http2.ServerHttp2Session, LiveSession | undefined>();
  /** Connections whose protocol is not known yet. Neither server tracks them. */
  const undecided = new Set<Socket>();
  /** Connections in their TLS handshake, by client address. Neither server tracks these either. */
  const shaking = new Map<string, Socket>();
  /**
   * All connections. Node drops a closed HTTP/2 session from its list, but its connection stays open until
   * the peer ends it too, or has read everything that was written.
   */
  const connections = new Set<Socket>();
  const pipelines = new Http1Pipelines();
  /** Announces with an answer that it is the last, unless a request already sent may follow. */
  const endConnection = (res: http.ServerResponse): void => {
    const pipeline = pipelines.find(res.req.socket);
    if (res.headersSent || pipeline?.newest !== res) return;
    if (isGraceOver || !pipeline.isPipelined) res.setHeader("connection", "close");
  };
  const handle: http.RequestListener = (req, res) => {
    const exchange = new Http1Exchange(req, res);
    const { socket } = req;
    exchange.onClose(() => {
      if (!exchange.isAnswered && !options.countAbandoned(exchange.peer, socket)) socket.destroy();
    });
    const toPage = (): void => {
      exchange.release((name, value) => res.setHeader(name, value));
      options.onPage(req, res);
    };
    try {
      options.onExchange(exchange, toPage);
    } catch (error) {
      options.onFault(error, req.url);
      res.destroy();
    }
  };
  const http2Server = createHttp2Server(options, sessions);
  const onRequest: http.RequestListener = (req, res) => {
    containErrors(req);
    containErrors(res);
    const { socket } = req;
    const { answers, newest: earlier, isLast = false } = pipelines.find(socket) ?? {};
    const ahead = answers?.size ?? 0;
    if (socket.destroyed || isLast) return;
    pipelines.add(res);
    res.once("close", () => {
      // If the headers were sent before draining began, Node would wait for the next request.
      if (isGraceOver) setImmediate(() => http1Server.closeIdleConnections());
    });
    if (ahead + 1 === maxPipelined || hidesNext(req)) pipelines.end(res);
    if (drained === undefined) return handle(req, res);
    if (earlier?.headersSent === false) earlier.removeHeader("connection");
    endConnection(res);
    // By the next turn, the next pipelined request has been read.
    setImmediate(() => {
      if (!res.destroyed) handle(req, res);
    });
  };
  const http1Server = createHttp1Server(options, pipelines, onRequest);
  chooseProtocol(http1Server, http2Server, undecided, options);
  // Must run before any other listener. With TLS, a connection is two sockets.
  for (const event of ["connection", "secureConnection"]) http1Server.prependListener(event, containErrors);
  http1Server.on("connection", (socket: Socket) => {
    const leave = options.admitConnection(socket.remoteAddress);
    if (leave === undefined) return void socket.destroy();
    connections.add(socket);
    socket.once("close", () => {
      connections.delete(socket);
      leave();
    });
  });
  if (options.tls !== undefined) {
    http1Server.on("connection", (socket: Socket) => {
      const peer = describePeer(socket);
      shaking.set(peer, socket);
      socket.once("close", () => {
        if (shaking.get(peer) === socket) shaking.delete(peer);
      });
    });
    http1Server.on("secureConnection", (socket: TLSSocket) => {
      const peer = describePeer(socket);
      const connection = shaking.get(peer);
      if (connection !== undefined) moveOffers(connection, socket);
      shaking.delete(peer);
    });
  }

  const drain = async (): Promise<void> => {
    const { closed } = await stopAccepting(http1Server);
    for (const res of pipelines.answers()) endConnection(res);
    for (const [session, live] of sessions) endSession(session, live?.socket);
    await waitForGrace(closed);
    isGraceOver = true;
    for (const res of pipelines.answers()) endConnection(res);
    for (const [session, live] of sessions) (live ?? session).close();
    for (const socket of [...undecided, ...shaking.values()]) socket.destroy();
    http1Server.closeIdleConnections();
    await closed;
  };

  return {
    listen: (port, host, { reusePort = false } = {}) =>
      new Promise((resolve, reject) => {
        http1Server.once("error", reject);
        http1Server.listen({ port, host, reusePort }, () => {
          http1Server.off("error", reject);
          resolve(http1Server.address() as AddressInfo);
        });
      }),
    renewTls: (tls) => {
      if (http1Server instanceof TlsServer) http1Server.setSecureContext(toNodeTls(tls));
    },
    drain: () => {
      drained ??= drain();
      return drained;
    },
    destroy: () => {
      http1Server.close();
      for (const session of sessions.keys()) session.destroy();
      http1Server.closeAllConnections();
      for (const socket of connections) socket.destroy();
    },
  };
}

/**
 * Returns whether the parser cannot find the next request. After an upgrade request, Node drops the rest of
 * the segment. With a transfer coding other than chunked, the body length is unknown (RFC 9112, section 6.3).
 */
function hidesNext({ headers: { upgrade, "transfer-encoding": coding } }: http.IncomingMessage): boolean {
  return upgrade !== undefined || (coding !== undefined && !/(^|,)\s*chunked$/i.test(coding));
}

function describePeer({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
