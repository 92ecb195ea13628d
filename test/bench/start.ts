/** Startup time, the memory of a server at rest, and the gain from a second server on the same port. */
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { readCpuMs, readMemory } from "../support/process-usage.ts";
import { main } from "../support/program.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { type H2Load, measureWithH2load } from "./h2load.ts";
import { ratiosOf, report } from "./results.ts";
import { grpc, measureInTurn, measureMs, rounds } from "./tools.ts";

/** Time after which an idle server is at rest, in milliseconds. */
const restMs = 5000;

/** Starts the program like npm start, on an existing store. */
export async function measureStart(dataDir: string): Promise<void> {
  const folder = join(dataDir, "start");
  // The first start creates the store and fills V8's compile cache.
  await (await begin(folder)).stop();
  const [seconds, cpuSeconds, memory]: [number[], number[], number[]] = [[], [], []];
  for (let round = 1; round <= rounds; round += 1) {
    const startMs = performance.now();
    const { process: child, stop } = await begin(folder);
    seconds.push((performance.now() - startMs) / 1000);
    cpuSeconds.push(readCpuMs(child) / 1000);
    await setTimeout(restMs);
    memory.push(readMemory(child).nowBytes / 1024 / 1024);
    await stop();
  }
  report("Startup to ready", seconds, { unit: "s", target: "at most 0.8" });
  report("CPU of a startup", cpuSeconds, { unit: "s" });
  report("Memory at rest", memory, { unit: "MiB", target: "at most 150" });
}

/** Starts the program like npm start. */
function begin(dataDir: string, ...args: string[]): Promise<RunningServer> {
  const flags = ["--max-semi-space-size=64", "--no-allocation-site-pretenuring"];
  return startServer({
    dataDir,
    args: ["--log-level", "error", ...args],
    how: { command: [process.execPath, ...flags, main], stdio: ["ignore", "pipe", "inherit"] },
  });
}

/** Enough that the system distributes them evenly. Each makes one call at a time. */
const connections = 128;

/** Loads one server and a pair of servers in turn. Requires h2load and Linux. */
export async function measureServers(dataDir: string): Promise<void> {
  const check: H2Load = { call: grpc(Health.method.check, {}), connections, inFlight: connections };
  const alone = await begin(join(dataDir, "alone"));
  const shared = ["--reuse-port", "--services", "pqc,kms"];
  const first = await begin(join(dataDir, "pair"), ...shared);
  const second = await begin(join(dataDir, "pair"), ...shared, "--port", new URL(first.url).port);
  const [one = [], two = []] = await measureInTurn(
    [alone, first].map(({ url, process: child }) => [
      url,
      async () => {
        const { callsPerSecond } = await measureWithH2load({ url, pid: child.pid ?? 0 }, check, measureMs);
        // Time for the server to close the connections that h2load dropped.
        await setTimeout(100);
        return callsPerSecond;
      },
    ]),
  );
  for (const { stop } of [alone, first, second]) await stop();
  report("Health.Check of one server", one, { unit: "calls/s" });
  report("Health.Check of two servers on one port", two, { unit: "calls/s" });
  const ratios = ratiosOf(two, one);
  report("Two servers against one, Health.Check", ratios, { unit: "times", target: "at least 1.6" });
}
