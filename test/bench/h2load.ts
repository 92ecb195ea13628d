/** Load from h2load (nghttp2-client), which needs little CPU. It checks no answer beyond its HTTP status. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http2, { type IncomingHttpHeaders } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { perCall, readThreadTimes, type ThreadTimes } from "./thread-times.ts";
import type { Child, MadeCall } from "./tools.ts";

const run = promisify(execFile);

/** A call and its protocol. */
export interface H2Load {
  readonly call: MadeCall;
  readonly protocol?: "h2" | "http/1.1";
  readonly connections?: number;
  /** Calls in flight over all connections. */
  readonly inFlight?: number;
}

/** One measurement. */
export interface Measured {
  readonly callsPerSecond: number;
  /** CPU time of the server for each call, in microseconds. */
  readonly cpu: ThreadTimes;
}

/**
 * Makes a call once.
 *
 * @throws if it fails, also if only its gRPC status says so
 */
export async function checkCall(
  url: string,
  { path, headers = {}, body = "", method = "POST" }: MadeCall,
): Promise<void> {
  const session = http2.connect(url);
  const head = { ":method": method, ":path": path, ...headers };
  const stream = session.request(head, { endStream: body === "" });
  if (body !== "") stream.end(Buffer.from(body, "base64"));
  const [answer] = (await once(stream, "response")) as [IncomingHttpHeaders];
  let trailers: IncomingHttpHeaders = {};
  stream.on("trailers", (received) => {
    trailers = received;
  });
  await once(stream.resume(), "close");
  session.close();
  const { ":status": status, "grpc-status": grpcStatus = "0" } = { ...answer, ...trailers };
  if (Number(status) !== 200 || grpcStatus !== "0")
    throw new Error(`${path} answered ${status}, grpc-status ${grpcStatus}`);
}

/** Loads a server for about the given milliseconds, after a warm-up with a third of the calls. */
export async function measureWithH2load(
  server: Pick<Child, "url" | "pid">,
  load: H2Load,
  milliseconds: number,
): Promise<Measured> {
  const rate = await request(server.url, load, ["--duration", String(Math.ceil(milliseconds / 3000))]);
  const calls = Math.max(Math.round((rate * milliseconds) / 1000), load.inFlight ?? 64);
  const before = readThreadTimes(server.pid);
  const callsPerSecond = await request(server.url, load, ["--requests", String(calls)]);
  return { callsPerSecond, cpu: perCall(before, readThreadTimes(server.pid), calls) };
}

/** Returns calls per second. */
async function request(
  url: string,
  { call, protocol = "h2", connections = 4, inFlight = 64 }: H2Load,
  amount: readonly string[],
): Promise<number> {
  const streams = ["--max-concurrent-streams", String(Math.ceil(inFlight / connections))];
  const stdout = await runH2load(url, call, [
    ...amount,
    ...["--clients", String(connections)],
    ...(protocol === "http/1.1" ? ["--h1"] : streams),
  ]);
  const [, perSecond] = /^finished in [\d.]+\w+, ([\d.]+) req\/s/m.exec(stdout) ?? [];
  const [, failed] = /, (\d+) failed/.exec(stdout) ?? [];
  const [, succeeded] = /^status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx/m.exec(stdout) ?? [];
  if (perSecond === undefined || failed !== "0" || succeeded === undefined)
    throw new Error(`${call.path} was not answered: ${stdout}`);
  return Number(perSecond);
}

/** Runs h2load, and returns its output. */
async function runH2load(
  url: string,
  { path, headers = {}, body = "", method = "POST" }: MadeCall,
  args: readonly string[],
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "qsp-h2load-"));
  try {
    writeFileSync(join(folder, "body"), Buffer.from(body, "base64"));
    const lines = Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]);
    const sent = method === "POST" ? ["--data", "body"] : [];
    const options = { cwd: folder, maxBuffer: 64 * 1024 * 1024 };
    const { stdout } = await run("h2load", [...args, ...lines, ...sent, url + path], options);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
