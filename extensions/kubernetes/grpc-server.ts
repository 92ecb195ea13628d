/** A gRPC server on a Unix socket. */
import http2 from "node:http2";
import type { Socket } from "node:net";
import type { Interceptor, ServiceImpl } from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import Fastify from "fastify";
import { KeyManagementService } from "#gen/kubernetes/kms_pb.ts";
import { endSession, stopAccepting, waitForGrace } from "../../src/server/drain-connections.ts";
import { listenOnSocket, type SocketPlace } from "./socket.ts";

/** The server's services and limits. */
export interface GrpcServerOptions {
  readonly service: ServiceImpl<typeof KeyManagementService>;
  readonly interceptors: Interceptor[];
  readonly place: SocketPlace;
  /** Timeout of a call in milliseconds, including the arrival of its message. */
  readonly maxCallMs: number;
  /** Milliseconds that running calls get when the server stops. */
  readonly maxDrainMs: number;
}

/**
 * Maximum message size in bytes: 1 kB each for ciphertext and key ID, 32 kB for annotations, and a UID (KMS
 * v2).
 */
const maxMessageBytes = 64 * 1024;
const maxConnections = 64;
/** Maximum concurrent calls per connection. gRPC clients queue further calls. */
const maxStreams = 128;
const maxHeaderBytes = 16 * 1024;
/** Milliseconds after which an idle connection is closed. API servers poll the status every minute. */
const idleMs = 300_000;

/** Starts a server. Call prepareSocket first. */
export async function startGrpcServer(options: GrpcServerOptions) {
  const { service, interceptors, place, maxCallMs, maxDrainMs } = options;
  const server = http2.createServer({
    settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: maxHeaderBytes },
  });
  const app = Fastify({
    http2: true,
    serverFactory: (handle) => server.on("request", handle),
    logger: false,
  });
  await app.register(fastifyConnectPlugin, {
    routes: (router) => void router.service(KeyManagementService, service),
    grpc: true,
    grpcWeb: false,
    connect: false,
    interceptors,
    readMaxBytes: maxMessageBytes,
    // Messages are small and mostly random, so compression gains nothing.
    acceptCompression: [],
  });
  await app.ready();
  const sessions = new Map<http2.ServerHttp2Session, Socket | undefined>();
  server.maxConnections = maxConnections;
  server.on("session", (session) => {
    sessions.set(session, undefined);
    session.once("connect", (_session, socket) => sessions.set(session, socket));
    session.once("close", () => sessions.delete(session));
    session.setTimeout(idleMs, () => session.close());
    // The error ends the session's own calls, which receive it too.
    session.on("error", () => {});
  });
  server.on("stream", (stream: http2.ServerHttp2Stream) => {
    const timer = setTimeout(() => stream.close(http2.constants.NGHTTP2_CANCEL), maxCallMs);
    stream.once("close", () => clearTimeout(timer));
    // A stream with unread bytes never closes and would delay shutdown until the timeout.
    stream.once("finish", () => {
      stream.removeAllListeners("data");
      stream.resume();
    });
  });
  await listenOnSocket(server, place);
  return {
    /** Stops accepting calls, lets running calls finish and removes the socket. */
    async close(): Promise<void> {
      const timer = setTimeout(() => {
        for (const session of sessions.keys()) session.destroy();
      }, maxDrainMs);
      const { closed } = await stopAccepting(server);
      for (const [session, socket] of sessions) endSession(session, socket);
      await waitForGrace(closed);
      for (const session of sessions.keys()) session.close();
      await closed;
      clearTimeout(timer);
    },
  };
}
