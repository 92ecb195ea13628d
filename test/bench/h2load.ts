/** Load from h2load (nghttp2-client), which needs little CPU. It checks no answer beyond its HTTP status. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LoadInput } from "./load.ts";
import { perCall, readThreadTimes, type ThreadTimes } from "./thread-times.ts";
import type { Child } from "./tools.ts";

const run = promisify(execFile);

/** A call and its protocol. */
export interface H2Load {
  readonly call: Partial<LoadInput>;
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

/** Loads a server for about the given milliseconds, after a warm-up with a third of the calls. */
export async function measureWithH2load(
  server: Pick<Child, "url" | "pid">,
  load: H2Load,
  milliseconds: number,
): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), "qsp-h2load-"));
  try {
    const rate = await request(server.url, folder, load, [
      "--duration",
      String(Math.ceil(milliseconds / 3000)),
    ]);
    const calls = Math.max(Math.round((rate * milliseconds) / 1000), load.inFlight ?? 64);
    const before = readThreadTimes(server.pid);
    const callsPerSecond = await request(server.url, folder, load, ["--requests", String(calls)]);
    return { callsPerSecond, cpu: perCall(before, readThreadTimes(server.pid), calls) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns calls per second. */
async function request(
  url: string,
  folder: string,
  { call, protocol = "h2", connections = 4, inFlight = 64 }: H2Load,
  amount: readonly string[],
): Promise<number> {
  const { path = "", headers = {}, body = "", method = "POST" } = call;
  const args = [...amount, "--clients", String(connections)];
  if (protocol === "http/1.1") args.push("--h1");
  else args.push("--max-concurrent-streams", String(Math.ceil(inFlight / connections)));
  for (const [name, value] of Object.entries(headers)) args.push("--header", `${name}: ${value}`);
  if (method === "POST") {
    writeFileSync(join(folder, "body"), Buffer.from(body, "base64"));
    args.push("--data", join(folder, "body"));
  }
  const { stdout } = await run("h2load", [...args, url + path]);
  const [, perSecond] = /^finished in [\d.]+\w+, ([\d.]+) req\/s/m.exec(stdout) ?? [];
  const [, failed] = /, (\d+) failed/.exec(stdout) ?? [];
  const [, succeeded] = /^status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx/m.exec(stdout) ?? [];
  if (perSecond === undefined || failed !== "0" || succeeded === undefined)
    throw new Error(`${path} was not answered: ${stdout}`);
  return Number(perSecond);
}
