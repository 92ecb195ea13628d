/** Maximum CPU and memory that small requests can cost. */
import { writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { readCpuMs, readMemory } from "../support/process-usage.ts";
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

describe.runIf(isLinux)("a request of at most 64 KB", { timeout: 120_000 }, () => {
  const atEnd = endAfterAll();
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer({ dataDir: makeTemporaryDirectory(atEnd), env: { NODE_OPTIONS: "" } });
    atEnd(async () => void (await server.stop("SIGKILL")));
  }, 120_000);

  it.each(listBombs())("%s", async (_name, bomb) => {
    const { process: child, url } = server;
    let [cpuMs, grown] = [Infinity, Infinity];
    for (let left = attempts; left > 0 && (cpuMs > maxCpuMs || grown > maxGrownMebibytes); left -= 1) {
      // Resets the peak to the current size; see proc(5).
      writeFileSync(`/proc/${child.pid}/clear_refs`, "5");
      const { nowBytes } = readMemory(child);
      const startedMs = readCpuMs(child);
      await sendBomb(url, bomb);
      cpuMs = Math.min(cpuMs, readCpuMs(child) - startedMs);
      grown = Math.min(grown, (readMemory(child).mostBytes - nowBytes) / 1024 / 1024);
    }
    expect(cpuMs).toBeLessThan(maxCpuMs);
    expect(grown).toBeLessThan(maxGrownMebibytes);
  });
});
