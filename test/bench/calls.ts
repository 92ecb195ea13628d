/** CPU cost of a call by thread, and throughput: the figures in docs/performance.md. */
import { join } from "node:path";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { checkCall, type H2Load, type Measured, measureWithH2load, sumOf } from "./h2load.ts";
import { median, ratiosOf, report } from "./results.ts";
import { type Child, grpc, json, measureInTurn, measureMs, post, providers, start } from "./tools.ts";

/** One side of a comparison; the sides are measured in turn. */
interface Contestant {
  readonly name: string;
  readonly server: Child;
  readonly load: H2Load;
}

/** Measures the cost of calls. Requires h2load and Linux. */
export async function measureCalls(app: Child, dataDir: string): Promise<void> {
  const [bare, grpcJs] = [await start("http2-server.ts"), await start("grpc-js-server.ts")];
  const check: H2Load = { call: grpc(Health.method.check, {}) };
  const checks = await measureAll([
    { name: "Health.Check", server: app, load: check },
    { name: "Health.Check of @grpc/grpc-js", server: grpcJs, load: check },
    { name: "Health.Check on node:http2 alone", server: bare, load: check },
  ]);
  for (const server of [bare, grpcJs]) server.send("stop");
  reportCpu(checks, { "Health.Check": "at most 55 µs on the event loop" });
  reportRatio(checks, "Health.Check", "Health.Check of @grpc/grpc-js", "at least 1.0");

  const hello: H2Load["call"] = { path: "/api/hello", method: "GET" };
  const connect = json(TokenService.method.hello, {});
  const web = {
    ...grpc(TokenService.method.hello, {}),
    headers: { "content-type": "application/grpc-web+proto" },
  };
  const http1 = { protocol: "http/1.1", connections: 64 } as const;
  const greetings = await measureAll([
    { name: "Hello over REST", server: app, load: { call: hello, ...http1 } },
    { name: "Hello over Connect JSON", server: app, load: { call: connect, ...http1 } },
    { name: "Hello over gRPC-Web", server: app, load: { call: web, ...http1 } },
    { name: "Hello over REST and HTTP/2", server: app, load: { call: hello } },
    { name: "Hello over Connect JSON and HTTP/2", server: app, load: { call: connect } },
  ]);
  reportCpu(greetings);
  reportRatio(greetings, "Hello over Connect JSON", "Hello over REST", "at least 0.77");
  reportRatio(greetings, "Hello over gRPC-Web", "Hello over REST", "at least 0.77");
  reportRatio(greetings, "Hello over Connect JSON and HTTP/2", "Hello over REST and HTTP/2", "at least 0.77");
  await measureSigning(dataDir);
}

const data = Buffer.alloc(32, 1);

/** Calls that sign, with the target of the native provider against OpenSSL. */
const signing: Readonly<Record<string, { target: string; load: (keyId: string) => H2Load }>> = {
  "KMS Sign": {
    target: "at least 2.0",
    load: (keyId) => ({ call: grpc(KmsService.method.sign, { keyId, data }) }),
  },
  SignData: { target: "at least 2.2", load: () => ({ call: grpc(PqcService.method.signData, { data }) }) },
  "BatchSign of 100": {
    target: "at least 3.5",
    load: (keyId) => ({
      call: grpc(KmsService.method.batchSign, { keyId, data: Array(100).fill(data) }),
      inFlight: 4,
    }),
  },
};

async function measureSigning(dataDir: string): Promise<void> {
  const servers = await Promise.all(
    providers.map((provider) =>
      start("app-server.ts", join(dataDir, `signing-${provider}`), "--crypto-provider", provider),
    ),
  );
  for (const [name, { target, load: makeLoad }] of Object.entries(signing)) {
    const contestants = servers.map(async (server, i) => {
      const { result } = await post(server, "/api/kms/create-key", { alias: "bench" });
      return { name: `${name}, ${providers[i]}`, server, load: makeLoad(result.keyId) };
    });
    const signed = await measureAll(await Promise.all(contestants));
    reportCpu(signed, { "KMS Sign, native": "at most 200 µs on the event loop" });
    if (providers.length > 1) reportRatio(signed, `${name}, native`, `${name}, openssl`, target);
  }
  const [fastest, ...others] = servers as [Child, ...Child[]];
  fastest.send("reset");
  await measureWithH2load(fastest, { call: grpc(PqcService.method.signData, { data }) }, measureMs);
  const { p99Ms } = await fastest.ask("report");
  const title = `Event loop delay under SignData, p99, ${providers[0]}`;
  report(title, [p99Ms], { unit: "ms", target: "at most 8" });
  for (const server of [fastest, ...others]) server.send("stop");
}

type Results = ReadonlyMap<string, readonly Measured[]>;

async function measureAll(contestants: readonly Contestant[]): Promise<Results> {
  // h2load does not read the gRPC status, so one ordinary call checks that the calls succeed.
  for (const { server, load: order } of contestants) await checkCall(server.url, order.call);
  const measured = await measureInTurn(
    contestants.map(({ name, server, load }) => [name, () => measureWithH2load(server, load, measureMs)]),
  );
  return new Map(contestants.map(({ name }, i) => [name, measured[i] ?? []]));
}

function reportCpu(results: Results, targets: Readonly<Record<string, string>> = {}): void {
  for (const [name, measured] of results) {
    const medianOf = (read: (one: Measured) => number): number => median(measured.map(read));
    const target = targets[name];
    report(
      `${name}, server CPU`,
      measured.map(({ cpu }) => sumOf(cpu)),
      {
        unit: "µs",
        ...(target !== undefined && { target }),
        parts: {
          loop: medianOf(({ cpu }) => cpu.loop),
          pool: medianOf(({ cpu }) => cpu.pool),
          SQLite: medianOf(({ cpu }) => cpu.sqlite),
          other: medianOf(({ cpu }) => cpu.other),
          "calls per second": medianOf(({ callsPerSecond }) => callsPerSecond),
        },
      },
    );
  }
}

function reportRatio(results: Results, first: string, second: string, target: string): void {
  const ratesOf = (name: string) => (results.get(name) ?? []).map(({ callsPerSecond }) => callsPerSecond);
  const ratios = ratiosOf(ratesOf(first), ratesOf(second));
  report(`${first} against ${second}, calls per second`, ratios, { unit: "times", target });
}
