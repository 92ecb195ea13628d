/** CPU cost of a call by thread, and throughput: the figures in docs/performance.md. */
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { BatchSignRequestSchema, SignRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { SignDataRequestSchema } from "#gen/pqc/pqc_service_pb.ts";
import { loadNative } from "../../src/crypto/native/load.ts";
import { type H2Load, type Measured, measureWithH2load } from "./h2load.ts";
import { median, report, showProgress } from "./results.ts";
import { sumOf } from "./thread-times.ts";
import { type Child, grpc, json, load, measureMs, post, rounds, start } from "./tools.ts";

/** One side of a comparison; the sides are measured in turn. */
interface Contestant {
  readonly name: string;
  readonly server: Child;
  readonly load: H2Load;
}

/** Measures the cost of calls. Requires h2load and Linux. */
export async function measureCalls(app: Child, grpcJs: Child, dataDir: string): Promise<void> {
  const bare = await start("http2-server.ts");
  const check: H2Load = { call: grpc("/grpc.health.v1.Health/Check", new Uint8Array()) };
  const checks = await measureInTurn([
    { name: "Health.Check", server: app, load: check },
    { name: "Health.Check of @grpc/grpc-js", server: grpcJs, load: check },
    { name: "Health.Check on node:http2 alone", server: bare, load: check },
  ]);
  bare.send("stop");
  reportCpu(checks, { "Health.Check": "at most 55 µs on the event loop" });
  reportRatio(checks, "Health.Check", "Health.Check of @grpc/grpc-js", "at least 1.0");

  const hello: H2Load["call"] = { path: "/api/hello", method: "GET" };
  const connect = json("/pqc.TokenService/Hello", "{}");
  const web = {
    ...grpc("/pqc.TokenService/Hello", new Uint8Array()),
    headers: { "content-type": "application/grpc-web+proto" },
  };
  const greetings = await measureInTurn([
    { name: "Hello over REST", server: app, load: { call: hello, protocol: "http/1.1", connections: 64 } },
    {
      name: "Hello over Connect JSON",
      server: app,
      load: { call: connect, protocol: "http/1.1", connections: 64 },
    },
    {
      name: "Hello over gRPC-Web",
      server: app,
      load: { call: web, protocol: "http/1.1", connections: 64 },
    },
    { name: "Hello over REST and HTTP/2", server: app, load: { call: hello } },
    { name: "Hello over Connect JSON and HTTP/2", server: app, load: { call: connect } },
  ]);
  reportCpu(greetings);
  reportRatio(greetings, "Hello over Connect JSON", "Hello over REST", "at least 0.77");
  reportRatio(greetings, "Hello over gRPC-Web", "Hello over REST", "at least 0.77");
  reportRatio(greetings, "Hello over Connect JSON and HTTP/2", "Hello over REST and HTTP/2", "at least 0.77");
  await measureSigning(dataDir);
}

async function measureSigning(dataDir: string): Promise<void> {
  const providers =
    loadNative().kind === "loaded" ? (["native", "openssl"] as const) : (["openssl"] as const);
  const servers = await Promise.all(
    providers.map(async (provider) => ({
      provider,
      server: await start(
        "app-server.ts",
        join(dataDir, `signing-${provider}`),
        "--crypto-provider",
        provider,
      ),
    })),
  );
  const data = Buffer.alloc(32, 1);
  const calls = {
    "KMS Sign": (keyId: string): H2Load => ({
      call: grpc(
        "/kms.KmsService/Sign",
        toBinary(SignRequestSchema, create(SignRequestSchema, { keyId, data })),
      ),
    }),
    SignData: (): H2Load => ({
      call: grpc(
        "/pqc.PqcService/SignData",
        toBinary(SignDataRequestSchema, create(SignDataRequestSchema, { data })),
      ),
    }),
    "BatchSign of 100": (keyId: string): H2Load => {
      const request = create(BatchSignRequestSchema, { keyId, data: Array(100).fill(data) });
      const call = grpc("/kms.KmsService/BatchSign", toBinary(BatchSignRequestSchema, request));
      return { call, inFlight: 4 };
    },
  };
  const targets: Record<string, string> = {
    "KMS Sign": "at least 2.0",
    SignData: "at least 2.2",
    "BatchSign of 100": "at least 3.5",
  };
  for (const [name, makeLoad] of Object.entries(calls)) {
    const contestants = await Promise.all(
      servers.map(async ({ provider, server }) => {
        const { result } = await post(server, "/api/kms/create-key", { alias: "bench" });
        return { name: `${name}, ${provider}`, server, load: makeLoad(result.keyId) };
      }),
    );
    const signed = await measureInTurn(contestants);
    reportCpu(signed, { "KMS Sign, native": "at most 200 µs on the event loop" });
    if (providers.length > 1) reportRatio(signed, `${name}, native`, `${name}, openssl`, targets[name] ?? "");
  }
  for (const { server } of servers) {
    server.send("reset");
    await measureWithH2load(server, calls.SignData(), measureMs);
  }
  const [fastest] = servers;
  if (fastest !== undefined) {
    const { p99Ms } = await fastest.server.ask("report");
    report(`Event loop delay under SignData, p99, ${fastest.provider}`, [p99Ms], {
      unit: "ms",
      target: "at most 8",
    });
  }
  for (const { server } of servers) server.send("stop");
}

type Results = ReadonlyMap<string, readonly Measured[]>;

/** Measures all sides in turn, several times, because the speed of a machine drifts within minutes. */
async function measureInTurn(contestants: readonly Contestant[]): Promise<Results> {
  // h2load does not read the gRPC status, so one ordinary call checks that the calls succeed.
  for (const { server, load: order } of contestants)
    await load(server.url, { ...order.call, inFlight: 1, warmUpMs: 0, measureMs: 100 });
  const results = new Map<string, Measured[]>(contestants.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const { name, server, load } of contestants) {
      showProgress(`${name}: round ${round} of ${rounds}`);
      results.get(name)?.push(await measureWithH2load(server, load, measureMs));
    }
  }
  showProgress();
  return results;
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
  const against = results.get(second) ?? [];
  const ratios = (results.get(first) ?? []).map(
    ({ callsPerSecond }, round) => callsPerSecond / (against[round]?.callsPerSecond ?? 0),
  );
  report(`${first} against ${second}, calls per second`, ratios, { unit: "times", target });
}
