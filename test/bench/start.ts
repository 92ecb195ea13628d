/** Startup time, and the memory of a server at rest and after many calls. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { main } from "../support/program.ts";
import { report } from "./results.ts";
import { post, rounds } from "./tools.ts";

/** Time after which an idle server is at rest, in milliseconds. */
const restMs = 5000;

/** Starts the program like npm start, on an existing store. */
export async function measureStart(dataDir: string): Promise<void> {
  const folder = join(dataDir, "start");
  // The first start creates the store and fills V8's compile cache.
  await stop((await begin(folder)).child);
  const [seconds, cpuSeconds, memory]: [number[], number[], number[]] = [[], [], []];
  for (let round = 1; round <= rounds; round += 1) {
    const { child, readyMs } = await begin(folder);
    seconds.push(readyMs / 1000);
    cpuSeconds.push(readCpuSeconds(child));
    await setTimeout(restMs);
    memory.push(readMiB(child));
    await stop(child);
  }
  report("Startup to ready", seconds, { unit: "s", target: "at most 0.8" });
  report("CPU of a startup", cpuSeconds, { unit: "s" });
  report("Memory at rest", memory, { unit: "MiB", target: "at most 150" });
}

/** Calls to make for the memory measurement, and calls in flight. */
const mixedCalls = 150_000;
const mixedInFlight = 16;

/** Makes five kinds of calls over REST, as many as a small service makes in a morning. */
export async function measureMemory(dataDir: string): Promise<void> {
  const { child, url } = await begin(join(dataDir, "memory"));
  const ask = (path: string, body: object) => post({ url }, path, body);
  const get = async (path: string) => (await fetch(url + path)).arrayBuffer();
  const data = Buffer.from("hello").toString("base64");
  const { result } = await ask("/api/kms/create-key", { alias: "bench" });
  const { keyId } = result;
  const signed = await ask("/api/grpc/sign", { data });
  const { signature, publicKey } = signed;
  const calls = [
    () => get("/api/hello"),
    () => ask("/api/grpc/sign", { data }),
    () => ask("/api/grpc/verify", { data, signature, publicKey }),
    () => ask("/api/kms/sign", { keyId, data }),
    () => get("/api/kms/keys?pageSize=10"),
  ];
  let made = 0;
  const memory: number[] = [];
  const call = async (): Promise<void> => {
    for (let i = made++; i < mixedCalls; i = made++) {
      if (i % (mixedCalls / 10) === 0) memory.push(readMiB(child));
      await calls[i % calls.length]?.();
    }
  };
  await Promise.all(Array.from({ length: mixedInFlight }, call));
  memory.push(readMiB(child));
  await stop(child);
  const title = `Memory after ${mixedCalls.toLocaleString("en")} calls over REST`;
  const parts = Object.fromEntries(memory.map((value, i) => [`at ${i * 10} %`, value]));
  report(title, memory.slice(-1), { unit: "MiB", target: "at most 400", parts });
}

/** Starts the program on a store in a folder and waits until it is ready. */
export async function begin(
  folder: string,
  ...more: string[]
): Promise<{ child: ChildProcess; url: string; readyMs: number }> {
  const startMs = performance.now();
  const flags = ["--port", "0", "--data-dir", folder, "--log-level", "error", ...more];
  const args = ["--max-semi-space-size=64", "--no-allocation-site-pretenuring", main, "serve", ...flags];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    output += chunk;
    const [, url] = /is ready on (\S+)/.exec(output) ?? [];
    if (url !== undefined) return { child, url, readyMs: performance.now() - startMs };
  }
  throw new Error(`the server did not start: ${output}`);
}

export async function stop(child: ChildProcess): Promise<void> {
  child.kill("SIGTERM");
  await once(child, "exit");
}

/** User and system time of a process, in seconds. */
export function readCpuSeconds({ pid }: ChildProcess): number {
  const [, times = ""] = /\) (.*)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
  // Fields 14 and 15 of proc(5), in ticks of 10 ms.
  const [user, system] = times.split(" ").slice(11, 13).map(Number);
  return ((user ?? 0) + (system ?? 0)) / 100;
}

function readMiB({ pid }: ChildProcess): number {
  const [, kiB = "0"] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kiB) / 1024;
}
