/**
 * One port for HTTP/1.1 and for HTTP/2, with TLS or without.
 *
 * The HTTP/1.1 server owns the port. It reads the first bytes of each connection. A connection that begins with the
 * HTTP/2 preface (RFC 9113, section 3.4) goes to an HTTP/2 server, which does not listen itself. With TLS the client
 * has already negotiated a protocol (ALPN) and must use that one.
 */
import type http from "node:http";
import type http2 from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import { chooseProtocol } from "./choose-protocol.ts";
import { containErrors } from "./connection-errors.ts";
import { endSession, stopAccepting, waitForGrace } from "./drain-connections.ts";
import { Http1Exchange } from "./exchange.ts";
import { Http1Pipelines } from "./http1-pipelines.ts";
import { createHttp1Server, toNodeTls } from "./http1-server.ts";
import { createHttp2Server } from "./http2-server.ts";
import type { ListenerOptions } from "./listener-options.ts";
import type { TlsOptions } from "./tls.ts";

/** A port and the connections to it. */
export interface Listener {
  /**
   * Binds; port 0 picks a free one.
   *
   * @param options.reusePort whether other programs may listen on the port too
   */
  listen(port: number, host: string, options?: { readonly reusePort?: boolean }): Promise<AddressInfo>;
  /** Uses other certificates from the next connection on. */
  renewTls(tls: TlsOptions): void;
  /**
   * Stops accepting, sends GOAWAY to HTTP/2 clients, and closes connections when they are idle. Answers all requests
   * that were sent before. Resolves when all connections are closed.
   */
  drain(): Promise<void>;
  /** Closes all open connections at once. */
  destroy(): void;
}

/**
 * Requests of a connection of HTTP/1.1 that may wait for their answers. Node reads 64 KB at a time, which can be two
 * thousand requests, and holds them all. RFC 9112, section 9.3.2: a client repeats what was not answered.
 */
const maxPipelined = 100;

/** Creates a listener. */
export function createListener(options: ListenerOptions): Listener {
  let drained: Promise<void> | undefined;
  /** Whether idle connections have had their time. */
  let isGraceOver = false;
  const sessions = new Map<http2.ServerHttp2Session, Socket | undefined>();
  /** Connections whose protocol is not known yet. Neither server tracks them. */
  const undecided = new Set<Socket>();
  /** Connections during their TLS handshake, by client address. Neither server tracks them either. */
  const shaking = new Map<string, Socket>();
  /**
   * All connections. Node forgets an HTTP/2 session that is closed, but its connection stays open until the peer ends
   * too, or has read what was written.
   */
  const connections = new Set<Socket>();
  const pipelines = new Http1Pipelines();
  /** Says with an answer that it is the last, if no request can follow it that was sent already. */
  const endConnection = (res: http.ServerResponse): void => {
    const pipeline = pipelines.find(res.req.socket);
    if (res.headersSent || pipeline?.newest !== res) return;
    if (isGraceOver || !pipeline.isPipelined) res.setHeader("connection", "close");
  };
  const handle: http.RequestListener = (req, res) => {
    const exchange = new Http1Exchange(req, res);
    const { socket } = req;
    exchange.onClose(() => {
      if (!exchange.isAnswered && !options.countAbandoned(exchange.peer)) socket.destroy();
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
    // In the next turn, the next request of a pipeline has been read.
    setImmediate(() => {
      if (!res.destroyed) handle(req, res);
    });
  };
  const http1Server = createHttp1Server(options, pipelines, onRequest);
  chooseProtocol(http1Server, http2Server, undecided, options);
  // Before any other listener. With TLS, a connection is two sockets.
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
    http1Server.on("secureConnection", (socket: Socket) => void shaking.delete(describePeer(socket)));
  }

  const drain = async (): Promise<void> => {
    const { closed } = await stopAccepting(http1Server);
    for (const res of pipelines.answers()) endConnection(res);
    for (const [session, socket] of sessions) endSession(session, socket);
    await waitForGrace(closed);
    isGraceOver = true;
    for (const res of pipelines.answers()) endConnection(res);
    for (const session of sessions.keys()) session.close();
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
 * Tells whether the parser cannot find the request that follows. After a request to upgrade, Node drops what came with it in
 * a segment. A transfer coding other than chunked leaves the length of the body unknown (RFC 9112, section 6.3).
 */
function hidesNext({ headers: { upgrade, "transfer-encoding": coding } }: http.IncomingMessage): boolean {
  return upgrade !== undefined || (coding !== undefined && !/(^|,)\s*chunked$/i.test(coding));
}

function describePeer({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
