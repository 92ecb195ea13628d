/** A server that stops under load: no call sent before is lost. Its clients call without a pause. */
import net from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { HealthCheckRequestSchema } from "#gen/grpc/health/v1/health_pb.ts";
import { SignDataRequestSchema } from "#gen/pqc/pqc_service_pb.ts";
import { decodeFrames, encodeCall } from "../server/frames.ts";
import { frameTypes, opening, writeFrame } from "../support/http2-frames.ts";
import { startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

/** Connects, and calls back when the connection is open. */
function open(port: number, onBytes: (bytes: Buffer) => void) {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.on("data", onBytes);
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  return { socket, closed };
}

/** Sends requests over HTTP/1.1 on one connection; more than one in flight makes a pipeline. */
function loadHttp1(port: number, requests: readonly string[], depth: number) {
  let isStopped = false;
  let begun = 0;
  let sent = 0;
  let answered = 0;
  let sentAtStop = 0;
  let rest = "";
  const { socket, closed } = open(port, (bytes) => {
    rest += bytes.toString("latin1");
    for (let end = endOfAnswer(rest); end !== undefined; end = endOfAnswer(rest)) {
      rest = rest.slice(end);
      answered += 1;
    }
    fill();
  });
  const fill = (): void => {
    while (!isStopped && socket.writable && begun - answered < depth) {
      socket.write(requests[begun % requests.length] ?? "", (error) => {
        if (!error) sent += 1;
      });
      begun += 1;
    }
  };
  socket.once("connect", fill);
  return {
    /** Stops sending. Calls whose last byte the system has accepted count as sent. */
    stop: () => {
      isStopped = true;
      sentAtStop = sent;
    },
    closed,
    answered: () => answered,
    /** Sent calls without an answer. Once the connection has closed, these calls are lost. */
    unanswered: () => Math.max(0, sentAtStop - answered),
  };
}

/** Returns the length of the answer at the start of a text; undefined if the answer is incomplete. */
function endOfAnswer(text: string): number | undefined {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return undefined;
  const [, length = "0"] = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, head)) ?? [];
  const end = head + 4 + Number(length);
  return text.length < end ? undefined : end;
}

/** Makes gRPC calls as raw frames, a fixed number at a time, until GOAWAY or the stop. */
function loadHttp2(
  port: number,
  calls: readonly { readonly path: string; readonly message: Uint8Array }[],
  depth: number,
) {
  let isStopped = false;
  let nextStream = 1;
  let rest = Buffer.alloc(0);
  let answered = 0;
  const running = new Set<number>();
  const sent = new Set<number>();
  let sentAtStop = new Set<number>();
  const { socket, closed } = open(port, (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (const { type, flags, streamId, payload } of decodeFrames(rest)) {
      rest = rest.subarray(9 + payload.length);
      const isFlagged = (flags & 1) === 1;
      if (type === frameTypes.ping && !isFlagged) socket.write(writeFrame(type, 1, 0, payload));
      if (type === frameTypes.goaway) isStopped = true;
      if (type !== frameTypes.headers || !isFlagged) continue;
      answered += 1;
      running.delete(streamId);
      sentAtStop.delete(streamId);
    }
    fill();
  });
  const fill = (): void => {
    while (!isStopped && socket.writable && running.size < depth) {
      const streamId = nextStream;
      const { path, message } = calls[(streamId >> 1) % calls.length] ?? {
        path: "/",
        message: Buffer.alloc(0),
      };
      nextStream += 2;
      running.add(streamId);
      socket.write(encodeCall(streamId, path, message), (error) => {
        if (!error) sent.add(streamId);
      });
    }
  };
  // A window large enough for all answers.
  socket.write(
    Buffer.concat([opening, writeFrame(frameTypes.windowUpdate, 0, 0, Buffer.from([0x3f, 0, 0, 0]))]),
  );
  socket.once("connect", fill);
  return {
    stop: () => {
      isStopped = true;
      sentAtStop = new Set([...running].filter((streamId) => sent.has(streamId)));
    },
    closed,
    answered: () => answered,
    unanswered: () => sentAtStop.size,
  };
}

const get = "GET /api/hello HTTP/1.1\r\nhost: localhost\r\n\r\n";
const body = JSON.stringify({ data: "aGVsbG8=" });
const post = `POST /api/grpc/sign HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
const check = {
  path: "/grpc.health.v1.Health/Check",
  message: toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema)),
};
const sign = {
  path: "/pqc.PqcService/SignData",
  message: toBinary(SignDataRequestSchema, create(SignDataRequestSchema, { data: Buffer.from("hello") })),
};

/** Calls with @grpc/grpc-js, 20 in flight, until the stop. */
function loadGrpcJs(authority: string) {
  const client = new Client(authority, credentials.createInsecure());
  onTestFinished(() => client.close());
  const asIs = (bytes: Buffer): Buffer => bytes;
  const ask = promisify((done: (error: Error | null) => void) =>
    client.makeUnaryRequest(check.path, asIs, asIs, Buffer.from(check.message), done),
  );
  let isStopped = false;
  let failures: string[] = [];
  const lanes = Array.from({ length: 20 }, async () => {
    while (!isStopped) await ask().catch((error: Error) => failures.push(error.message));
  });
  return {
    /** Resolves when all calls are on their way. */
    stop: async () => {
      isStopped = true;
      failures = [];
      await turn();
      await turn();
    },
    failures: async () => {
      await Promise.all(lanes);
      return failures;
    },
  };
}

/** Number of stops; QSP_TEST_KILLS=100 for a long run. */
const stops = Number(process.env.QSP_TEST_KILLS ?? 3);
/** Answered calls after which the server stops, at the latest. */
const maxAnswered = 400;

describe("a server that stops under load", { timeout: 300_000 }, () => {
  it.each(Array.from({ length: stops }, (_, index) => index + 1))(
    `loses no call sent before (%i of ${stops})`,
    async (round) => {
      const server = await startServer({ dataDir: makeTemporaryDirectory() });
      onTestFinished(async () => void (await server.stop("SIGKILL")));
      const port = Number(server.authority.split(":")[1]);
      const clients = [
        ...Array.from({ length: 10 }, () => loadHttp1(port, [get], 1)),
        ...Array.from({ length: 5 }, () => loadHttp1(port, [get, post], 1)),
        ...Array.from({ length: 5 }, () => loadHttp1(port, [get], 8)),
        ...Array.from({ length: 5 }, () => loadHttp1(port, [get, post], 4)),
        ...Array.from({ length: 5 }, () => loadHttp2(port, [check], 20)),
        ...Array.from({ length: 3 }, () => loadHttp2(port, [check, sign], 20)),
      ];
      const grpcJs = loadGrpcJs(server.authority);
      // All clients have begun, and each round stops the server at a different moment.
      const count = (): number[] => clients.map(({ answered }) => answered());
      const total = (): number => count().reduce((sum, answered) => sum + answered, 0);
      await vi.waitFor(() => expect(Math.min(...count())).toBeGreaterThan(0), { timeout: 100_000 });
      const wanted = total() + Math.round((round * maxAnswered) / stops);
      await vi.waitFor(() => expect(total()).toBeGreaterThan(wanted), { timeout: 100_000, interval: 1 });
      await grpcJs.stop();
      // New connections, which the server may not have accepted yet.
      clients.push(...Array.from({ length: 5 }, () => loadHttp1(port, [get], 1)));
      await turn();
      await turn();
      for (const client of clients) client.stop();
      server.process.kill("SIGTERM");
      await Promise.all(clients.map(({ closed }) => closed));
      expect(clients.map(({ unanswered }) => unanswered()).filter((lost) => lost > 0)).toEqual([]);
      expect(await grpcJs.failures()).toEqual([]);
      expect(await server.exit).toMatchObject({ code: 0, signal: null });
    },
  );
});
