/** The whole server, in a process that reports its load to its parent: `node app-server.ts <data dir> [setting …]`. */
import os from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { pino } from "pino";

process.env.UV_THREADPOOL_SIZE ??= String(os.availableParallelism() + 2);
const { createApp } = await import("../../src/app.ts");
const { readConfig } = await import("../../src/config.ts");
const { loadPackages } = await import("../support/whole-program.ts");

const config = readConfig(["--port", "0", "--data-dir", process.argv[2] ?? "", ...process.argv.slice(3)], {});
const app = await createApp(config, pino({ level: "error" }, pino.destination(2)), {
  packages: await loadPackages(),
});
const { port } = await app.server.listen(0, "127.0.0.1");
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();

process.on("message", (message) => {
  if (message === "reset") delay.reset();
  // The histogram includes its own resolution of 1 ms: a loop that is never late shows 1 ms.
  const p99Ms = delay.percentile(99) / 1e6 - 1;
  if (message === "report")
    process.send?.({ p99Ms: Math.max(p99Ms, 0), rssBytes: process.memoryUsage.rss() });
  if (message === "stop") process.exit(0);
});
process.send?.({ port });
