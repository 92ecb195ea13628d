/** Collectors that misbehave. */
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { allPeers, collectEnds, maxTakenBytes, startHostilePeer } from "../../../test/faults/hostile-peer.ts";
import { startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { openTracing } from "../open-tracing.ts";
import { otlpProtocols } from "../trace-options.ts";

const call = { method: Health.method.check, header: new Headers(), requestId: "call-1" };
const names = { serviceName: "qsp", serviceVersion: "0" };
const sampling = { ratio: 1, followsCallers: false, maxFollowedPerSecond: 0 };

describe.each(otlpProtocols)("a collector over %s that", { timeout: 300_000 }, (protocol) => {
  const atEnd = collectEnds();

  // An error outside of a promise, which would end the program, fails the test run.
  it.concurrent.each(Object.entries(allPeers))("%s, delays the end by seconds", async (_name, behaviour) => {
    const peer = await startHostilePeer(behaviour, atEnd);
    const endpoint = `http://127.0.0.1:${peer.port}`;
    const tracing = openTracing(
      { endpoint, protocol, sampling, ...names },
      { logger: pino({ level: "silent" }), instanceId: "server-1" },
    );
    tracing.startCall(call)?.end(undefined);
    await tracing.close();
    expect(peer.seen()).toBeGreaterThan(0);
    expect(peer.sentBytes()).toBeLessThan(maxTakenBytes);
  });

  it("says nothing, does not keep a server from stopping", async () => {
    const peer = await startHostilePeer(() => {}, onTestFinished);
    const collector = ["--otlp-endpoint", `http://127.0.0.1:${peer.port}`, "--otlp-protocol", protocol];
    const server = await startServer({ dataDir: makeTemporaryDirectory(), args: collector });
    expect((await fetch(`${server.url}/api/grpc/algorithms`)).status).toBe(200);
    expect(await server.stop()).toMatchObject({ code: 0, signal: null });
    expect(peer.seen()).toBeGreaterThan(0);
  });
});
