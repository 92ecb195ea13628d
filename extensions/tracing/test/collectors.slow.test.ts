/** Traces of the compiled program as an OpenTelemetry collector receives them, over both OTLP protocols. */
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { allPeers, collectEnds, maxTakenBytes, startHostilePeer } from "../../../test/faults/hostile-peer.ts";
import { isMissing } from "../../../test/interop/tools.ts";
import { present } from "../../../test/services/answers.ts";
import { findQuietPort } from "../../../test/support/find-quiet-port.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { openTracing } from "../open-tracing.ts";
import { otlpProtocols } from "../trace-options.ts";

/** An unmodified OpenTelemetry collector, built by go-collector from its own modules. */
let program: string;

/** An attribute value in OTLP JSON. */
type Value = Readonly<Record<"stringValue" | "intValue", string | undefined>>;
type Attributes = readonly { readonly key: string; readonly value: Value }[];

/** A span in OTLP JSON; kind 2 is a server span, status code 2 an error. */
interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: Attributes;
  readonly status?: { readonly code?: number; readonly message?: string };
  readonly events?: readonly { readonly name: string }[];
}

/** The content of one export. */
interface Batch {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Attributes };
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[];
  }[];
}

/** Starts a collector for one test. */
async function startCollector() {
  const ports = [await findQuietPort(), await findQuietPort()];
  const [grpc, http] = ports.map((port) => `127.0.0.1:${port}`);
  const child = spawn(program, [grpc ?? "", http ?? ""], { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill());
  const ready = Promise.withResolvers<void>();
  let log = "";
  child.stderr.on("data", (chunk) => {
    log += chunk;
    if (log.includes("Everything is ready")) ready.resolve();
  });
  child.once("exit", (code) => ready.reject(new Error(`the collector ended with ${code}: ${log}`)));
  const batches: Batch[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => batches.push(JSON.parse(line)));
  await ready.promise;
  const spans = () => {
    const scopes = batches.flatMap(({ resourceSpans }) => resourceSpans.flatMap((one) => one.scopeSpans));
    return scopes.flatMap((scope) => scope.spans);
  };
  /** Waits for a span. */
  const find = async (name: string): Promise<ReceivedSpan> => {
    await expect.poll(() => spans().map((span) => span.name)).toContain(name);
    return present(spans().find((span) => span.name === name));
  };
  return { urls: { grpc: `http://${grpc}`, "http/protobuf": `http://${http}` }, batches, spans, find };
}

/** Converts attributes to an object. */
function readAttributes(attributes: Attributes): Record<string, string | undefined> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));
}

const traceId = "0af7651916cd43dd8448eb211c80319c";
const parentSpanId = "b7ad6b7169203331";
const traceparent = `00-${traceId}-${parentSpanId}-01`;
const secretText = "the text to sign must not be traced";

async function startTraced(protocol: "grpc" | "http/protobuf", ...args: string[]) {
  const collector = await startCollector();
  const server = await startServer({
    dataDir: makeTemporaryDirectory(),
    args: ["--otlp-endpoint", collector.urls[protocol], "--otlp-protocol", protocol, ...args],
  });
  const kms = createClient(KmsService, createGrpcTransport({ baseUrl: server.url }));
  return { collector, server, kms };
}

describe.skipIf(isMissing("go"))("an OpenTelemetry collector", { timeout: 120_000 }, () => {
  beforeAll(() => {
    program = join(makeTemporaryDirectory(afterAll), "collector");
    const cwd = join(import.meta.dirname, "go-collector");
    const { status, stderr } = spawnSync("go", ["build", "-o", program, "."], { cwd, encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
  }, 600_000);

  it.each(otlpProtocols)(
    "receives a call with its child spans in the caller's trace, over %s",
    async (protocol) => {
      const { collector, server, kms } = await startTraced(protocol);
      const { result } = await kms.createKey({ algorithm: "ML-DSA-65" });
      const keyId = present(result).keyId;
      // On shutdown, the server has two seconds to send queued spans, counted from the connection.
      await collector.find("kms.KmsService/CreateKey");
      const data = new TextEncoder().encode(secretText);
      const headers = { traceparent, tracestate: "shop=a1", "x-request-id": "mine-1" };
      await kms.sign({ keyId, data }, { headers });
      // Stopping the server flushes queued spans.
      expect(await server.stop()).toMatchObject({ code: 0 });
      const call = await collector.find("kms.KmsService/Sign");
      expect(call).toMatchObject({ traceId, parentSpanId, kind: 2, traceState: "shop=a1" });
      expect(readAttributes(call.attributes)).toEqual({
        "rpc.system.name": "grpc",
        "rpc.method": "kms.KmsService/Sign",
        "rpc.status_code": "OK",
        "qsp.request_id": "mine-1",
      });
      // The first use of a key unseals it. A use begins again if the cache evicts the changed key meanwhile.
      const parts = collector.spans().filter((span) => span.parentSpanId === call.spanId);
      const expected = new Set(["crypto import", "crypto sign", "store commit"]);
      expect(new Set(parts.map(({ name }) => name))).toEqual(expected);
      const sign = await collector.find("crypto sign");
      const about = { "qsp.crypto.operation": "sign", "qsp.crypto.algorithm": "ML-DSA-65" };
      expect(readAttributes(sign.attributes)).toEqual(about);
      expect(sign.traceId).toBe(traceId);
      expect(sign.events?.map(({ name }) => name)).toEqual(["began"]);
      const all = JSON.stringify(collector.batches);
      expect(all).not.toContain(secretText);
      expect(all).not.toContain(keyId);
    },
  );

  it("receives failed calls, and calls that are refused before they run, which are no server errors", async () => {
    const { collector, server } = await startTraced("grpc", "--auth", "token");
    const tokens = createClient(TokenService, createGrpcTransport({ baseUrl: server.url }));
    const login = tokens.issueToken({ username: "nobody", password: "wrong" });
    expect((await refusal(login)).reason).toBe("LOGIN_FAILED");
    expect((await fetch(`${server.url}/api/kms/key/k`, { headers: { traceparent } })).status).toBe(401);
    const own = await collector.find("pqc.TokenService/IssueToken");
    const inTrace = await collector.find("kms.KmsService/GetKey");
    await server.stop();
    const failure = { "rpc.system.name": "grpc", "error.type": "LOGIN_FAILED" };
    expect(readAttributes(own.attributes)).toMatchObject(failure);
    expect([own.status?.code ?? 0, own.parentSpanId ?? ""]).toEqual([0, ""]);
    const refused = { "rpc.status_code": "UNAUTHENTICATED", "error.type": "TOKEN_MISSING" };
    expect(readAttributes(inTrace.attributes)).toMatchObject({ "rpc.system.name": "rest", ...refused });
    expect(inTrace).toMatchObject({ traceId, parentSpanId });
  });

  it("is found through the standard OpenTelemetry variables, which also name the service", async () => {
    const collector = await startCollector();
    const server = await startServer({
      dataDir: makeTemporaryDirectory(),
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.urls.grpc,
        OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
        OTEL_SERVICE_NAME: "keys of the shop",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
      },
    });
    await fetch(`${server.url}/api/hello`);
    await collector.find("pqc.TokenService/Hello");
    await server.stop();
    expect(readAttributes(collector.batches[0]?.resourceSpans[0]?.resource.attributes ?? [])).toMatchObject({
      "service.name": "keys of the shop",
      "deployment.environment.name": "test",
    });
  });
});

/** A collector that is down or never answers: calls must not be affected, and the log must report it. */
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
  it.each(otlpProtocols)("loses spans but no calls over %s", { timeout: 180_000 }, async (protocol) => {
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
  });
});

it("a caller that records every trace gets ten calls per second traced in addition to the operator's share", async () => {
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

/** Collectors that misbehave. */
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
});
