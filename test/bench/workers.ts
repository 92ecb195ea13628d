/** What several event loops gain: the same calls to a server with one, and to one with two. */
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type H2Load, measureWithH2load } from "./h2load.ts";
import { report } from "./results.ts";
import { begin, stop } from "./start.ts";
import { grpc, measureMs, rounds } from "./tools.ts";

/** So many that the system spreads them about evenly. Each makes one call at a time. */
const connections = 128;

/** Loads servers with one and with two event loops in turn. Needs h2load, and Linux. */
export async function measureWorkers(dataDir: string): Promise<void> {
  const check: H2Load = {
    call: grpc("/grpc.health.v1.Health/Check", new Uint8Array()),
    connections,
    inFlight: connections,
  };
  const servers = await Promise.all(
    [1, 2].map((workers) => begin(join(dataDir, `workers-${workers}`), "--workers", `${workers}`)),
  );
  const rates: number[][] = [[], []];
  for (let round = 1; round <= rounds; round += 1) {
    for (const [i, { url, child }] of servers.entries()) {
      const { callsPerSecond } = await measureWithH2load({ url, pid: child.pid ?? 0 }, check, measureMs);
      rates[i]?.push(callsPerSecond);
      // Lets connections go that h2load has closed.
      await setTimeout(100);
    }
  }
  for (const { child } of servers) await stop(child);
  const [one = [], two = []] = rates;
  report("Health.Check with one event loop", one, { unit: "calls/s" });
  report("Health.Check with two event loops", two, { unit: "calls/s" });
  const ratios = two.map((rate, i) => rate / (one[i] ?? Number.NaN));
  report("Two event loops against one, Health.Check", ratios, { unit: "times", target: "at least 1.6" });
}
