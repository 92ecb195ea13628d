/** The HTTP/2 server of a port. It does not listen itself. */
import http2 from "node:http2";
import { metadataTooLarge, refuse } from "../errors.ts";
import { containErrors } from "./connection-errors.ts";
import { Http2Exchange } from "./exchange.ts";
import type { ListenerOptions } from "./listener-options.ts";
import { countRawBytes, headroom, maxReadFields } from "./metadata.ts";
import { forgetClosedStreams } from "./node-workarounds.ts";
import { type LiveSession, watchLiveness } from "./session-liveness.ts";

const tooManyAbandoned = refuse(
  "RATE_LIMITED",
  "the client abandons requests too fast; read the responses or slow down",
);

/** @param sessions receives the open sessions */
export function createHttp2Server(
  options: ListenerOptions,
  sessions: Map<http2.ServerHttp2Session, LiveSession | undefined>,
): http2.Http2Server {
  const server = http2.createServer(
    {
      settings: {
        // Above our own limit, because Node would reset the stream without telling the caller why. The limit
        // is checked where the server can answer.
        maxHeaderListSize: options.maxMetadataBytes * headroom,
        maxConcurrentStreams: 1000,
        initialWindowSize: 1024 * 1024,
      },
      // Unlike the settings, which a client need not acknowledge, this applies from the first request on. One
      // byte can refer to a 4 KB field that was sent before, and nghttp2 validates all of its characters each
      // time.
      maxHeaderListPairs: maxReadFields,
      maxSessionMemory: 128,
      // Streams that a client may reset in a burst and per second before its connection is closed. Opening
      // and resetting a stream costs the client next to nothing (CVE-2023-44487).
      streamResetBurst: 200,
      streamResetRate: 100,
    },
    // A page. Its exchange has already checked the request.
    (req, res) => {
      Http2Exchange.of(req.stream)?.release((name, value) => res.setHeader(name, value));
      containErrors(req);
      containErrors(res);
      options.onPage(req, res);
    },
  );
  // Without listeners Node answers these itself, the second one even on a stream that its caller has reset.
  const [onPage] = server.listeners("request");
  for (const event of ["connect", "checkContinue", "checkExpectation"]) server.on(event, onPage as never);
  // Node's own listener turns every stream into a request. The intake must come first.
  const [makeRequest] = server.listeners("stream");
  if (makeRequest === undefined) throw new Error("node:http2 has no stream listener");
  server.removeAllListeners("stream");
  server.on("session", (session) => {
    containErrors(session);
    forgetClosedStreams(session);
    sessions.set(session, undefined);
    // Read now: once the client has left, nobody knows its address.
    const peer = session.socket.remoteAddress;
    let live: LiveSession | undefined;
    session.once("connect", (_session, socket) => {
      live = watchLiveness(session, socket, { silenceMs: options.maxWriteMs, unread: options.unread });
      sessions.set(session, live);
      // A session can outlive its connection without ever reporting that it has closed.
      socket.once("close", () => sessions.delete(session));
    });
    session.on("close", () => sessions.delete(session));
    session.on("stream", (stream, headers, flags, rawHeaders: string[]) => {
      containErrors(stream);
      // The settings forbid headers this large, and Node resets such streams itself once the client has
      // acknowledged them.
      const bytes = countRawBytes(rawHeaders);
      if (bytes > options.maxMetadataBytes * headroom)
        return session.destroy(
          metadataTooLarge(bytes, options.maxMetadataBytes),
          http2.constants.NGHTTP2_ENHANCE_YOUR_CALM,
        );
      live?.streamOpened();
      const exchange = new Http2Exchange(stream, headers, rawHeaders, {
        peer,
        socket: sessions.get(session)?.socket,
      });
      exchange.onClose(() => {
        live?.streamClosed();
        if (!exchange.isAnswered && !options.countAbandoned(peer, session))
          session.destroy(tooManyAbandoned, http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
      });
      try {
        options.onExchange(exchange, () => makeRequest.call(server, stream, headers, flags, rawHeaders));
      } catch (error) {
        options.onFault(error, exchange.target);
        exchange.drop();
      }
    });
  });
  return server;
}
