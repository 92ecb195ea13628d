/** A server controlled by the test at the level of HTTP/2 streams, where resets and refusals happen. */
import { once } from "node:events";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { onTestFinished } from "vitest";
import {
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "#gen/grpc/health/v1/health_pb.ts";
import { envelope } from "../server/raw.ts";
import type { AtEnd } from "../support/at-end.ts";

/** Handles a call. */
export type Answer = (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void;

/** A controllable server. */
export type PlainBackend = Awaited<ReturnType<typeof startPlainBackend>>;

/** Answers with the request headers, as JSON. */
export const tellHeaders: Answer = (stream, headers) => {
  stream.respond({ ":status": 200, "content-type": "application/json" });
  stream.end(JSON.stringify(headers));
};

/** Answers like a server that has lost its store: 503, or 14 over gRPC. */
export const answerUnavailable: Answer = (stream, headers) => {
  const isGrpc = headers["content-type"] === "application/grpc";
  const grpc = { ":status": 200, "content-type": "application/grpc", "grpc-status": "14" };
  stream.respond(isGrpc ? grpc : { ":status": 503 }, { endStream: true });
};

/** Accepts the request, and resets the stream. */
export const breakOff: Answer = (stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);

/** Reports that it has not processed the request. */
export const refuseStream: Answer = (stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);

/** Serves until the end of the test. */
export async function startPlainBackend(answer: Answer, atEnd: AtEnd = onTestFinished) {
  const calls: http2.IncomingHttpHeaders[] = [];
  const sessions = new Set<http2.ServerHttp2Session>();
  let isServing = true;
  const server = http2.createServer();
  server.on("session", (session) => sessions.add(session));
  server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    stream.on("error", () => {}); // Envoy may have stopped.
    if (headers[":path"] === "/grpc.health.v1.Health/Check") return answerHealth(stream, isServing);
    calls.push(headers);
    answer(stream, headers);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return {
    /** "127.0.0.1:port" */
    authority: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The headers of all calls so far, without health checks. */
    calls,
    /** Sets the health that it reports. */
    setServing: (value: boolean): void => {
      isServing = value;
    },
  };
}

function answerHealth(stream: http2.ServerHttp2Stream, isServing: boolean): void {
  const status = isServing ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  const message = create(HealthCheckResponseSchema, { status });
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(envelope(toBinary(HealthCheckResponseSchema, message)));
}
