/** The HTTP/1.1 server that owns a port. */
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ConnectError } from "@connectrpc/connect";
import { metadataTooLarge, refuse } from "../errors.ts";
import type { Http1Pipelines } from "./http1-pipelines.ts";
import type { ListenerOptions } from "./listener-options.ts";
import { headroom } from "./metadata.ts";
import { discardRest, drainRequestMs } from "./node-workarounds.ts";
import { methodUnknown } from "./route.ts";
import type { TlsOptions } from "./tls.ts";

/**
 * Milliseconds that an idle connection of HTTP/1.1 stays open. Load balancers keep theirs for 60 s. A client that sends
 * a request just as the server closes gets a reset, and must not repeat every call.
 */
const keepAliveMs = 75_000;

/** @param pipelines the answers that are not finished */
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
      // The code that reads bodies limits them. A stream has no time limit.
      requestTimeout: 0,
      // We answer a request without a Host header ourselves, in our error format.
      requireHostHeader: false,
    },
    onRequest,
  );
  // RFC 9110, section 10.1.1, lets a server ignore unknown expectations. Without a listener Node answers itself.
  server.on("checkExpectation", onRequest);
  // The exchange sends "100 Continue" itself, once the body is read.
  server.on("checkContinue", onRequest);
  server.maxRequestsPerSocket = 0;
  // Their bytes are limited. Node would refuse the thousandth field as if there were too many bytes.
  server.maxHeadersCount = 0;
  const failed = new WeakSet<Duplex>();
  const refuseConnection = (error: ParseError | ConnectError, socket: Duplex): void => {
    // Each later segment fails as well, and would cut off the answer to the first.
    if (failed.has(socket)) return;
    failed.add(socket);
    // The answers to earlier requests come first. An answer to these bytes would be taken for one of them.
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
    // Node reads no more, and would not notice that the peer leaves before an endless answer ends.
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
  // Before the handshake ends, the client cannot read an answer.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

/** The options of node:tls. */
export function toNodeTls({ cert, key, ...protocol }: TlsOptions) {
  return { ...protocol, cert: [...cert], key: [...key] };
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
  discardRest(socket);
  setTimeout(() => socket.destroy(), drainRequestMs).unref();
}

/** Discards what a peer sends, and ends the connection with the peer. */
function endWithPeer(socket: Duplex): void {
  socket.once("end", () => socket.destroy());
  discardRest(socket);
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
