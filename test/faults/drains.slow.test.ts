/** A server that stops under load: no call sent before is lost. */
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { HealthCheckRequestSchema } from "#gen/grpc/health/v1/health_pb.ts";
import { SignDataRequestSchema } from "#gen/pqc/pqc_service_pb.ts";
import { startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadHttp1, loadHttp2 } from "./drain-load.ts";

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
