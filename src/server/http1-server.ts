/** The HTTP/1.1 server, which owns the port. */
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ConnectError } from "@connectrpc/connect";
import { metadataTooLarge, refuse } from "../errors.ts";
import { watchClientHellos } from "./client-hello.ts";
import type { Http1Pipelines } from "./http1-pipelines.ts";
import type { ListenerOptions } from "./listener-options.ts";
import { headroom } from "./metadata.ts";
import { discardRest, drainRequestMs } from "./node-workarounds.ts";
import { methodUnknown } from "./route.ts";
import type { TlsOptions } from "./tls.ts";

/**
 * Milliseconds that an idle HTTP/1.1 connection stays open. Load balancers keep theirs for 60 s. A client
 * that sends a request just as the server closes gets a reset, and must not retry every call.
 */
const keepAliveMs = 75_000;

/** @param pipelines tracks the unfinished answers */
export function createHttp1Server(
  options: ListenerOptions,
  pipelines: Pick<Http1Pipelines, "find">,
  onRequest: http.RequestListener,
): http.Server {
  const server = createPlainOrTls(
    options,
    {
      maxHeaderSize: options.maxMetadataBytes * headroom,
      headersTimeout: options.maxHeaderMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: Math.min(options.maxHeaderMs, 1000),
      // The code that reads bodies enforces time limits. A stream has none.
      requestTimeout: 0,
      // A missing Host header is answered in our own error format.
      requireHostHeader: false,
    },
    onRequest,
  );
  // RFC 9110, section 10.1.1, lets a server ignore unknown expectations. Without a listener Node answers
  // itself.
  server.on("checkExpectation", onRequest);
  // The exchange sends "100 Continue" itself when the body is read.
  server.on("checkContinue", onRequest);
  server.maxRequestsPerSocket = 0;
  // Header bytes are limited instead. Node would reject the thousandth field as if there were too many bytes.
  server.maxHeadersCount = 0;
  const failed = new WeakSet<Duplex>();
  const refuseConnection = (error: ParseError | ConnectError, socket: Duplex): void => {
    // Later segments fail as well, and would cut off the answer to the first.
    if (failed.has(socket)) return;
    failed.add(socket);
    // Answers to earlier requests come first. The client would take the answer to these bytes for one of
    // them.
    const { answers, isLast = false } = pipelines.find(socket as Socket) ?? {};
    const earlier = (answers?.items() ?? []).filter(({ req }) => isLast || req.complete);
    if (isLast && earlier.length === 0) return;
    if (earlier.length === 0) return answerBadRequest(error, socket, options);
    let left = earlier.length;
    const closeAfterLast = (): void => {
      left -= 1;
      if (left === 0) socket.end();
    };
    for (const res of earlier) res.once("close", closeAfterLast);
    // Node has stopped reading, and would not notice if the peer disconnects during an endless answer.
    if (socket.readableEnded) socket.destroy();
    else endWithPeer(socket);
  };
  server.on("clientError", refuseConnection);
  // RFC 9110, section 9.3.6: CONNECT is for proxies. Without a listener Node closes the connection.
  server.on("connect", (_req, socket) => refuseConnection(methodUnknown("CONNECT"), socket));
  return server;
}

function createPlainOrTls(
  { tls, maxHeaderMs }: ListenerOptions,
  serverOptions: http.ServerOptions,
  onRequest: http.RequestListener,
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
  watchClientHellos(server, maxHeaderMs);
  // Before the handshake ends, the client cannot read an answer.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

/** Converts to node:tls options. */
export function toNodeTls({ cert, key, ...protocol }: TlsOptions) {
  return { ...protocol, cert: [...cert], key: [...key] };
}

/**
 * Answers bytes that are not an HTTP/1.1 request, and lets the peer finish sending before the connection
 * ends.
 */
function answerBadRequest(error: ParseError | ConnectError, socket: Duplex, options: ListenerOptions): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, headers, body } = options.refuseBytes(explain(error, options));
  const lines = [`HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ""}`, "x-content-type-options: nosniff"];
  headers.forEach((value, name) => {
    lines.push(`${name}: ${value}`);
  });
  socket.write(`${lines.join("\r\n")}\r\nconnection: close\r\n\r\n`);
  socket.end(body);
  // Closing with unread bytes would reset the connection, and the peer would lose the answer.
  discardRest(socket);
  setTimeout(() => socket.destroy(), drainRequestMs).unref();
}

/** Discards incoming data and closes the connection when the peer does. */
function endWithPeer(socket: Duplex): void {
  socket.once("end", () => socket.destroy());
  discardRest(socket);
}

/** Node's error for bytes that are not valid HTTP/1.1. */
interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
  /** Offset in the packet where the parser stopped. */
  readonly bytesParsed?: number;
}

/** The method in the request line where the parser stopped; undefined if there is no valid request line. */
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
