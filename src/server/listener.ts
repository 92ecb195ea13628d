/**
 * One port for HTTP/1.1 and for HTTP/2, with TLS or without.
 *
 * The HTTP/1.1 server owns the port. It reads the first bytes of each connection. A connection that begins with the
 * HTTP/2 preface (RFC 9113, section 3.4) goes to an HTTP/2 server, which does not listen itself. With TLS the client
 * has already negotiated a protocol (ALPN) and must use that one.
 */
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Server as TlsServer } from "node:tls";
import { ConnectError } from "@connectrpc/connect";
import { metadataTooLarge, refuse } from "../errors.ts";
import type { Claim } from "../shared-memory/clients.ts";
import type { RestResponse } from "../transcoding/http.ts";
import { drainRequestMs } from "./drain-request.ts";
import { Http2Response } from "./http2-response.ts";
import type { RequestHandler, StreamHandler } from "./node-http.ts";
import { methodUnknown } from "./path-methods.ts";
import type { TlsOptions } from "./tls.ts";
import type { Writing } from "./unread-responses.ts";

/** The settings and handlers of a listener. */
export interface ListenerOptions {
  readonly onRequest: RequestHandler;
  readonly onStream: StreamHandler;
  /** Renders the answer to bytes that are not an HTTP/1.1 request. */
  readonly renderFailure: (error: Error) => RestResponse;
  /** Bytes of metadata that calls may have. Node itself stops reading only well beyond this limit. */
  readonly maxMetadataBytes: number;
  /** Milliseconds for the headers of a request to arrive. */
  readonly maxHeaderMs: number;
  /** Connections at a time. The server closes further connections on arrival. */
  readonly maxConnections: number;
  /** Counts the connections of all event loops. */
  readonly allConnections: Claim;
  /** Whether other event loops listen on the same port. The system then spreads connections over them. */
  readonly isShared: boolean;
  /** Watches the bytes that a connection's peer does not read. @returns a function that stops the watch */
  readonly watchConnection: (connection: Writing) => () => void;
  /** Certificates and their keys. Without them connections are plaintext. */
  readonly tls?: TlsOptions | undefined;
}

/** A port and the connections to it. */
export interface Listener {
  /** Binds; port 0 picks a free one. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** Uses other certificates from the next connection on. */
  renewTls(tls: TlsOptions): void;
  /** Stops accepting, sends GOAWAY to HTTP/2 clients, closes idle connections; resolves when all are closed. */
  drain(): Promise<void>;
  /** Closes all open connections at once. */
  destroy(): void;
}

/** "PRI" begins the HTTP/2 preface and is not a method of HTTP/1.1. */
const preface = Buffer.from("PRI");

/**
 * Milliseconds that an idle connection of HTTP/1.1 stays open. Load balancers keep theirs for 60 s. Who sends a request
 * just as the server closes gets a reset, and must not repeat every call.
 */
const keepAliveMs = 75_000;

/** Headers up to this multiple of the limit are still read, so that their sender gets an answer. */
const headroom = 8;

/** Creates a listener. */
export function createListener(options: ListenerOptions): Listener {
  let draining = false;
  const sessions = new Set<http2.ServerHttp2Session>();
  /** Connections whose protocol is not known yet. Neither server tracks them. */
  const undecided = new Set<Socket>();
  /** Connections during their TLS handshake, by client address. Neither server tracks them either. */
  const shaking = new Map<string, Socket>();
  /**
   * All connections. Node forgets an HTTP/2 session that is closed, but its connection stays open until the peer ends
   * too, or has read what was written.
   */
  const connections = new Set<Socket>();
  /** Answers of HTTP/1.1 that are not finished. */
  const running = new Set<http.ServerResponse>();
  const http2Server = createHttp2Server(options, sessions);
  const onRequest: RequestHandler = (req, res) => {
    running.add(res);
    res.once("close", () => {
      running.delete(res);
      // If the headers were sent before draining began, Node would wait for the next request.
      if (draining) setImmediate(() => http1Server.closeIdleConnections());
    });
    if (draining) res.setHeader("connection", "close");
    options.onRequest(req, res);
  };
  const http1Server = createHttp1Server(
    options,
    {
      maxHeaderSize: options.maxMetadataBytes * headroom,
      headersTimeout: options.maxHeaderMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: Math.min(options.maxHeaderMs, 1000),
      // The code that reads bodies limits them. A stream has no time limit.
      requestTimeout: 0,
      // We answer a request without a Host header ourselves, in our error format.
      requireHostHeader: false,
    },
    onRequest,
  );
  // RFC 9110, section 10.1.1, lets a server ignore unknown expectations. Without a listener Node answers itself.
  http1Server.on("checkExpectation", onRequest);
  // The intake sends "100 Continue" itself, once it has admitted the request.
  http1Server.on("checkContinue", onRequest);
  http1Server.maxRequestsPerSocket = 0;
  http1Server.maxConnections = options.maxConnections;
  http1Server.on("clientError", (error, socket) => {
    // The answers to earlier requests come first. An answer to these bytes would be taken for one of them.
    const earlier = [...running].filter(({ req }) => req.socket === socket && req.complete);
    if (earlier.length === 0) return answerBadRequest(error, socket, options);
    let left = earlier.length;
    const closeAfterLast = (): void => {
      left -= 1;
      if (left === 0) socket.end();
    };
    for (const res of earlier) res.once("close", closeAfterLast);
  });
  // RFC 9110, section 9.3.6: CONNECT is for proxies. Without a listener Node closes the connection.
  http1Server.on("connect", (_req, socket) => answerBadRequest(methodUnknown("CONNECT"), socket, options));
  chooseProtocol(http1Server, http2Server, undecided, options);
  http1Server.on("connection", (socket: Socket) => {
    if (!options.allConnections.enter("connections", options.maxConnections)) return void socket.destroy();
    connections.add(socket);
    socket.once("close", () => {
      connections.delete(socket);
      options.allConnections.add("connections", -1);
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

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        http1Server.once("error", reject);
        http1Server.listen({ port, host, reusePort: options.isShared }, () => {
          http1Server.off("error", reject);
          resolve(http1Server.address() as AddressInfo);
        });
      }),
    renewTls: (tls) => {
      if (http1Server instanceof TlsServer) http1Server.setSecureContext(toNodeTls(tls));
    },
    drain: async () => {
      draining = true;
      const closed = new Promise<void>((resolve) => http1Server.close(() => resolve()));
      for (const session of sessions) session.close();
      for (const res of running) if (!res.headersSent) res.setHeader("connection", "close");
      for (const socket of [...undecided, ...shaking.values()]) socket.destroy();
      http1Server.closeIdleConnections();
      await closed;
    },
    destroy: () => {
      http1Server.close();
      for (const session of sessions) session.destroy();
      http1Server.closeAllConnections();
      for (const socket of connections) socket.destroy();
    },
  };
}

function describePeer({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function createHttp1Server(
  { tls, maxHeaderMs }: ListenerOptions,
  serverOptions: http.ServerOptions,
  onRequest: RequestHandler,
): http.Server {
  if (tls === undefined) return http.createServer(serverOptions, onRequest);
  const server = https.createServer(
    {
      ...serverOptions,
      ...toNodeTls(tls),
      ALPNProtocols: ["h2", "http/1.1"],
      handshakeTimeout: maxHeaderMs,
    },
    onRequest,
  );
  // Before the handshake ends, the client cannot read an answer.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

function toNodeTls({ cert, key, ...protocol }: TlsOptions) {
  return { ...protocol, cert: [...cert], key: [...key] };
}

function createHttp2Server(
  options: ListenerOptions,
  sessions: Set<http2.ServerHttp2Session>,
): http2.Http2Server {
  const server = http2.createServer(
    {
      settings: {
        // Above the limit itself: Node would reset the stream, and the caller would not learn why. The limit is
        // checked where the server can answer.
        maxHeaderListSize: options.maxMetadataBytes * headroom,
        maxConcurrentStreams: 1000,
        initialWindowSize: 1024 * 1024,
      },
      maxHeaderListPairs: 2000,
      maxSessionMemory: 128,
      Http2ServerResponse: Http2Response,
    },
    options.onRequest as never,
  );
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    closeWhenIdle(session);
    // A session error affects only the session's own streams, and they get the error too.
    session.on("error", () => {});
  });
  // Without a listener Node answers CONNECT itself.
  server.on("connect", options.onRequest as never);
  // Node's own listener turns every stream into a request. Ours runs before it.
  const [makeRequest] = server.listeners("stream");
  if (makeRequest === undefined) throw new Error("node:http2 has no stream listener");
  server.removeAllListeners("stream");
  server.on("stream", (stream: http2.ServerHttp2Stream, headers, flags, rawHeaders: string[]) => {
    if (!options.onStream(stream, headers, rawHeaders))
      makeRequest.call(server, stream, headers, flags, rawHeaders);
  });
  return server;
}

/** Milliseconds after which a silent HTTP/2 connection is closed. Node has such a timeout only for HTTP/1.1. */
const idleMs = 300_000;

/** Closes an idle session. A session with open streams may stay silent without limit. */
function closeWhenIdle(session: http2.ServerHttp2Session): void {
  let open = 0;
  session.on("stream", (stream) => {
    open += 1;
    stream.once("close", () => {
      open -= 1;
      forgetListeners(stream);
    });
  });
  session.setTimeout(idleMs, () => {
    if (open === 0) session.close();
  });
}

/**
 * Drops the listeners of a closed stream. Node keeps the stream until the next full collection of garbage, and their
 * table is half of what it keeps. `removeAllListeners` would take longer than the rest of a small call. An error without
 * a listener would end the process, so that one stays, although a stream emits nothing after "close".
 */
function forgetListeners(stream: http2.Http2Stream & { _events?: object }): void {
  stream._events = { error: ignore };
}

function ignore(): void {}

/** Reads the first bytes of every connection and passes it to the server for its protocol. */
function chooseProtocol(
  http1Server: http.Server,
  http2Server: http2.Http2Server,
  undecided: Set<Socket>,
  { tls, maxHeaderMs, watchConnection }: ListenerOptions,
): void {
  const event = tls === undefined ? "connection" : "secureConnection";
  const acceptHttp1 = http1Server.listeners(event);
  http1Server.removeAllListeners(event);
  http1Server.on(event, (socket: Socket) => {
    const stopWatching = watchConnection({
      pendingBytes: () => socket.writableLength,
      drop: () => socket.destroy(),
    });
    socket.once("close", stopWatching);
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
        // In HTTP/1.1 a client may stop sending and still read. An HTTP/2 session ends with either side.
        socket.allowHalfOpen = false;
        http2Server.emit("connection", socket);
      } else {
        for (const accept of acceptHttp1) accept.call(http1Server, socket);
      }
    };
    socket.on("readable", inspect);
    socket.once("end", onEarlyError);
  });
}

/** Answers bytes that are not an HTTP/1.1 request. Lets the peer finish sending before the connection ends. */
function answerBadRequest(error: ParseError | ConnectError, socket: Duplex, options: ListenerOptions): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, headers, body } = options.renderFailure(explain(error, options));
  const lines = [`HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ""}`, "x-content-type-options: nosniff"];
  headers.forEach((value, name) => {
    lines.push(`${name}: ${value}`);
  });
  socket.write(`${lines.join("\r\n")}\r\nconnection: close\r\n\r\n`);
  socket.end(body);
  // Closing with unread bytes would reset the connection, and the peer would lose the answer.
  socket.on("data", () => {});
  socket.resume();
  setTimeout(() => socket.destroy(), drainRequestMs).unref();
}

/** Node's error for bytes that it cannot parse as HTTP/1.1. */
interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  /** Where in the packet the parser stopped. */
  readonly bytesParsed?: number;
}

/** The method of the request line where the parser stopped; undefined if that is not a request line. */
function findMethod({ rawPacket = Buffer.alloc(0), bytesParsed = 0 }: ParseError): string | undefined {
  const text = rawPacket.toString("latin1");
  const line = text.slice(text.lastIndexOf("\n", bytesParsed - 1) + 1);
  // RFC 9112, section 3; RFC 9110, section 5.6.2: a method is a token.
  return /^([!#$%&'*+.^_`|~\w-]+) \S+ HTTP\/1\.[01]\r?\n/.exec(line)?.[1];
}

function explain(error: ParseError | ConnectError, options: ListenerOptions): Error {
  if (error instanceof ConnectError) return error;
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return metadataTooLarge(options.maxMetadataBytes * headroom, options.maxMetadataBytes);
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return refuse(
        "REQUEST_TOO_SLOW",
        `the headers did not arrive within ${options.maxHeaderMs / 1000} seconds`,
      );
    case "HPE_INVALID_METHOD": {
      const method = findMethod(error);
      if (method !== undefined) return methodUnknown(method);
      return refuse("HTTP_INVALID", "the bytes are not an HTTP/1.1 or HTTP/2 request");
    }
    default:
      return refuse("HTTP_INVALID", "the bytes are not an HTTP/1.1 or HTTP/2 request");
  }
}
