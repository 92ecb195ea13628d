/**
 * One port for HTTP/1.1 and for HTTP/2, with TLS or without.
 *
 * The HTTP/1.1 server owns the port. It looks at the first bytes of a connection and gives those that begin
 * with the HTTP/2 preface (RFC 9113, section 3.4) to an HTTP/2 server, which never listens itself. With TLS the
 * client has said by then what it is going to speak (ALPN), and must say the same.
 */
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Server as TlsServer } from "node:tls";
import { ConnectError } from "@connectrpc/connect";
import { metadataTooLarge, refuse } from "../errors.ts";
import type { RestResponse } from "../transcoding/http.ts";
import { drainRequestMs } from "./drain-request.ts";
import { Http2Response } from "./http2-response.ts";
import type { RequestHandler, StreamHandler } from "./node-http.ts";
import { methodUnknown } from "./path-methods.ts";
import type { TlsOptions } from "./tls.ts";
import type { Writing } from "./unread-responses.ts";

/** What a listener is made of. */
export interface ListenerOptions {
  readonly onRequest: RequestHandler;
  readonly onStream: StreamHandler;
  /** Renders the answer to bytes that are no HTTP/1.1 request. */
  readonly renderFailure: (error: Error) => RestResponse;
  /** Bytes of metadata that calls may have; Node itself stops reading only well beyond. */
  readonly maxMetadataBytes: number;
  /** Milliseconds for the headers of a request to arrive. */
  readonly maxHeaderMs: number;
  /** Connections at a time; further ones are closed as they come. */
  readonly maxConnections: number;
  /** Watches what a connection's peer does not read. @returns stops it */
  readonly watchConnection: (connection: Writing) => () => void;
  /** Certificates and their keys; without them connections are in the clear. */
  readonly tls?: TlsOptions | undefined;
}

/** A port that is being served. */
export interface Listener {
  /** Binds; port 0 picks a free one. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** Takes other certificates from the next connection on. */
  renewTls(tls: TlsOptions): void;
  /** Stops accepting, tells every HTTP/2 client to go away, closes idle connections; ends when all are closed. */
  drain(): Promise<void>;
  /** Breaks off what is still open. */
  destroy(): void;
}

/** "PRI" begins the HTTP/2 preface, and is no method of HTTP/1.1. */
const preface = Buffer.from("PRI");

/** How far beyond the limit headers are still read, so that their sender gets an answer. */
const headroom = 8;

/** Makes a listener. */
export function createListener(options: ListenerOptions): Listener {
  let draining = false;
  const sessions = new Set<http2.ServerHttp2Session>();
  /** Connections that have not shown which protocol they speak; neither server knows of them. */
  const undecided = new Set<Socket>();
  /** Connections in the middle of a handshake, by the address of the client: neither server knows of them either. */
  const shaking = new Map<string, Socket>();
  /**
   * All connections. A session of HTTP/2 that was closed only says that it ends, and is gone for Node; its connection
   * stays until the peer ends too, or has read what was written.
   */
  const connections = new Set<Socket>();
  /** Answers of HTTP/1.1 that are not finished. */
  const running = new Set<http.ServerResponse>();
  const http2Server = createHttp2Server(options, sessions);
  const onRequest: RequestHandler = (req, res) => {
    running.add(res);
    res.once("close", () => {
      running.delete(res);
      // After an answer whose headers were sent before, Node would wait for the next request.
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
      connectionsCheckingInterval: Math.min(options.maxHeaderMs, 1000),
      // Bodies are bounded where they are read; a stream may take as long as it likes.
      requestTimeout: 0,
      // A request without one gets an answer that says so, of our form.
      requireHostHeader: false,
    },
    onRequest,
  );
  // RFC 9110, section 10.1.1, lets a server ignore what it does not know; Node answers for itself otherwise.
  http1Server.on("checkExpectation", onRequest);
  // The server says so itself, once it is sure that it wants the body.
  http1Server.on("checkContinue", onRequest);
  http1Server.maxRequestsPerSocket = 0;
  http1Server.maxConnections = options.maxConnections;
  http1Server.on("clientError", (error, socket) => answerBadRequest(error, socket, options));
  // RFC 9110, section 9.3.6: CONNECT is for proxies. Node closes the connection if nobody answers.
  http1Server.on("connect", (_req, socket) => answerBadRequest(methodUnknown("CONNECT"), socket, options));
  chooseProtocol(http1Server, http2Server, undecided, options);
  http1Server.on("connection", (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
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
        http1Server.listen(port, host, () => {
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
  // Nobody is there yet who could read an answer.
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
        // Not the limit itself: Node would reset the stream, and no caller would learn why. The limit is
        // checked where an answer can be given.
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
    // A broken session harms its own streams alone; they have been told.
    session.on("error", () => {});
  });
  // Node answers CONNECT itself unless there is a listener.
  server.on("connect", options.onRequest as never);
  // Node makes a request of every stream in a listener of its own; ours goes before it.
  const [makeRequest] = server.listeners("stream");
  if (makeRequest === undefined) throw new Error("node:http2 has no stream listener");
  server.removeAllListeners("stream");
  server.on("stream", (stream: http2.ServerHttp2Stream, headers, ...others) => {
    if (!options.onStream(stream, headers)) makeRequest.call(server, stream, headers, ...others);
  });
  return server;
}

/** Milliseconds that a connection of HTTP/2 stays open without a byte on it; Node has this of HTTP/1.1 alone. */
const idleMs = 300_000;

/** Lets a session go that nobody uses; one with open streams may be silent for as long as it likes. */
function closeWhenIdle(session: http2.ServerHttp2Session): void {
  let open = 0;
  session.on("stream", (stream) => {
    open += 1;
    stream.once("close", () => {
      open -= 1;
    });
  });
  session.setTimeout(idleMs, () => {
    if (open === 0) session.close();
  });
}

/** Reads the first bytes of every connection and gives it to the server that speaks its protocol. */
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
    const look = (): void => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      seen = Buffer.concat([seen, chunk]);
      if (seen.length < preface.length && preface.subarray(0, seen.length).equals(seen)) return;
      socket.off("readable", look);
      socket.off("error", onEarlyError);
      socket.off("timeout", onEarlyError);
      socket.off("end", onEarlyError);
      socket.off("close", forget);
      forget();
      socket.setTimeout(0);
      // Put back for the server that takes over.
      socket.unshift(seen);
      if (seen.subarray(0, preface.length).equals(preface)) {
        // HTTP/1.1 lets a client stop sending and still read; a session of HTTP/2 ends with either side.
        socket.allowHalfOpen = false;
        http2Server.emit("connection", socket);
      } else {
        for (const accept of acceptHttp1) accept.call(http1Server, socket);
      }
    };
    socket.on("readable", look);
    socket.once("end", onEarlyError);
  });
}

/** Answers what is no HTTP/1.1 request, and lets the peer finish sending before the connection ends. */
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
  // Closing with unread bytes would reset the connection and take the answer with it.
  socket.on("data", () => {});
  socket.resume();
  setTimeout(() => socket.destroy(), drainRequestMs).unref();
}

/** What Node says of bytes that it cannot parse as HTTP/1.1. */
interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  /** Where in the packet the parser stopped. */
  readonly bytesParsed?: number;
}

/** The method of the request line in which the parser stopped; undefined if it is none. */
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
      return refuse("HTTP_INVALID", "this is not a request of HTTP/1.1 or HTTP/2");
    }
    default:
      return refuse("HTTP_INVALID", "this is not a request of HTTP/1.1 or HTTP/2");
  }
}
