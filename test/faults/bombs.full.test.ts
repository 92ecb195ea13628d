/** Maximum CPU and memory that small requests can cost. */
import type { ChildProcess } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { listBombs, sendBomb } from "./bombs.ts";

/** Budget of a request of 64 KB. */
const maxCpuMs = 400;
const maxGrownMebibytes = 120;
/** Other processes only slow a request down, so the cheapest of a few attempts counts. */
const attempts = 4;

/** /proc exists only on Linux. */
const isLinux = process.platform === "linux";

/** User and system time of a process, in milliseconds; see proc(5), /proc/pid/stat, fields 14 and 15. */
function readCpuMs({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  // 100 ticks per second.
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Memory in MiB: the current size, and the peak since the last reset. */
function readMemory({ pid }: ChildProcess): { now: number; most: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const read = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024;
  return { now: read("VmRSS"), most: read("VmHWM") };
}

/** Resets the peak to the current size; see proc(5), /proc/pid/clear_refs. */
function resetMostMemory({ pid }: ChildProcess): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

describe.runIf(isLinux)("a request of at most 64 KB", { timeout: 120_000 }, () => {
  const atEnd = endAfterAll();
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer({ dataDir: makeTemporaryDirectory(atEnd), env: { NODE_OPTIONS: "" } });
    atEnd(async () => void (await server.stop("SIGKILL")));
  }, 120_000);

  const costs: string[] = [];
  afterAll(() => {
    if (process.env.QSP_TEST_COSTS === "1") process.stdout.write(`${costs.join("\n")}\n`);
  });

  it.each(listBombs())("%s", async (name, bomb) => {
    const { process: child, url } = server;
    let cpuMs = Infinity;
    let grown = Infinity;
    for (
      let attempt = 0;
      attempt < attempts && (cpuMs > maxCpuMs || grown > maxGrownMebibytes);
      attempt += 1
    ) {
      resetMostMemory(child);
      const memory = readMemory(child).now;
      const startedMs = readCpuMs(child);
      await sendBomb(url, bomb);
      cpuMs = Math.min(cpuMs, readCpuMs(child) - startedMs);
      grown = Math.min(grown, readMemory(child).most - memory);
    }
    costs.push(`${cpuMs} ms ${grown.toFixed(1)} MiB ${name}`);
    expect(cpuMs).toBeLessThan(maxCpuMs);
    expect(grown).toBeLessThan(maxGrownMebibytes);
  });
});
