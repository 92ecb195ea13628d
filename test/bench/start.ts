/** Startup time, and the memory of a server at rest. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { readCpuMs, readMemory } from "../support/process-usage.ts";
import { main } from "../support/program.ts";
import { report } from "./results.ts";
import { rounds } from "./tools.ts";

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
    cpuSeconds.push(readCpuMs(child) / 1000);
    await setTimeout(restMs);
    memory.push(readMemory(child).nowBytes / 1024 / 1024);
    await stop(child);
  }
  report("Startup to ready", seconds, { unit: "s", target: "at most 0.8" });
  report("CPU of a startup", cpuSeconds, { unit: "s" });
  report("Memory at rest", memory, { unit: "MiB", target: "at most 150" });
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
