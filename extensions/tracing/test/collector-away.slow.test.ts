/** A collector that is down or never answers: calls must not be affected, and the log must report it. */

import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { startHostilePeer } from "../../../test/faults/hostile-peer.ts";
import { startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

const secret = "api-key=hunter2-of-the-collector";

/** Places where no collector answers, and their URLs. */
const absent = {
  // Nothing listens on this port, whereas a free port could be taken by another test.
  "does not listen": async () => "http://127.0.0.1:1",
  "never answers": async () => {
    const peer = await startHostilePeer(() => {}, onTestFinished);
    return `http://127.0.0.1:${peer.port}`;
  },
};

async function readCount(url: string, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((one) => one.startsWith(series));
  return Number(line?.split(" ").at(-1) ?? Number.NaN);
}

describe.each(Object.entries(absent))("a collector that %s", (_name, locate) => {
  it.each(["grpc", "http/protobuf"])(
    "loses spans but no calls over %s",
    { timeout: 180_000 },
    async (protocol) => {
      const startedMs = performance.now();
      const server = await startServer({
        dataDir: makeTemporaryDirectory(),
        args: ["--otlp-endpoint", await locate(), "--otlp-protocol", protocol],
        env: { OTEL_EXPORTER_OTLP_HEADERS: secret, OTEL_LOG_LEVEL: "debug" },
      });
      const health = createClient(Health, createGrpcTransport({ baseUrl: server.url }));
      // More than the queue (2,048) and the batch in flight (512) can hold.
      for (let round = 0; round < 28; round += 1)
        await Promise.all(Array.from({ length: 100 }, () => health.check({})));
      const count = (outcome: string) => readCount(server.url, `qsp_trace_spans_total{outcome="${outcome}"}`);
      const countLost = async () => (await count("dropped")) + (await count("failed"));
      // On a busy machine, a batch that timed out may not be counted yet.
      await expect.poll(countLost).toBeGreaterThanOrEqual(2800 - 2048 - 512);
      expect(await count("exported")).toBe(0);
      const exit = await server.stop();
      expect(exit.code).toBe(0);
      const lines = exit.stderr.split("\n").filter((line) => line.includes("traces cannot be exported"));
      // At most one per minute.
      expect(lines.length).toBeLessThanOrEqual(Math.ceil((performance.now() - startedMs) / 60_000));
      expect(exit.stderr + exit.stdout).not.toContain("hunter2");
    },
  );
});

describe("a caller that records every trace", () => {
  it("gets ten calls per second traced in addition to the operator's share", async () => {
    const url = await absent["does not listen"]();
    const server = await startServer({
      dataDir: makeTemporaryDirectory(),
      args: ["--otlp-endpoint", url, "--trace-sample-ratio", "0"],
    });
    const health = createClient(Health, createGrpcTransport({ baseUrl: server.url }));
    // A trace ID that every ratio-based sampler would select.
    const headers = { traceparent: `00-${"0".repeat(31)}1-b7ad6b7169203331-01` };
    const startedMs = performance.now();
    for (let round = 0; round < 10; round += 1)
      await Promise.all(Array.from({ length: 100 }, () => health.check({}, { headers })));
    const limited = await readCount(server.url, "qsp_trace_callers_limited_total");
    const most = 10 + ((performance.now() - startedMs) / 1000) * 10 + 1;
    expect(limited).toBeGreaterThanOrEqual(1000 - most);
    expect(limited).toBeLessThan(1000);
    await server.stop();
  });
});
