/** Loads servers with h2load, and reads where they spend their time (Linux): CPU time of their threads by role. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http2";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Child, MadeCall } from "./tools.ts";

/** CPU time by role, in microseconds. */
export interface ThreadTimes {
  /** The event loop. */
  readonly loop: number;
  /** libuv's pool, which signs. */
  readonly pool: number;
  /** The SQLite threads. */
  readonly sqlite: number;
  /** V8's own threads (compiler, garbage collector) and all others. */
  readonly other: number;
}

/** Reads the CPU time of all threads since the process started. */
export function readThreadTimes(pid: number): ThreadTimes {
  const times = { loop: 0, pool: 0, sqlite: 0, other: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const read = (file: string): string => readFileSync(`/proc/${pid}/task/${thread}/${file}`, "utf8");
    try {
      // The first number is the time on a core, in nanoseconds.
      times[kindOf(Number(thread) === pid, read("comm"))] += Number(read("schedstat").split(" ")[0]) / 1000;
    } catch {
      // The thread has ended since.
    }
  }
  return times;
}

function kindOf(isMain: boolean, name: string): keyof ThreadTimes {
  if (isMain) return "loop";
  if (name.startsWith("libuv-worker")) return "pool";
  return name.startsWith("sqlite") ? "sqlite" : "other";
}

/** Returns the CPU time for each call between two readings. */
export function perCall(before: ThreadTimes, after: ThreadTimes, calls: number): ThreadTimes {
  const take = (kind: keyof ThreadTimes): number => (after[kind] - before[kind]) / calls;
  return { loop: take("loop"), pool: take("pool"), sqlite: take("sqlite"), other: take("other") };
}

/** Returns the total of all threads. */
export function sumOf({ loop, pool, sqlite, other }: ThreadTimes): number {
  return loop + pool + sqlite + other;
}

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
