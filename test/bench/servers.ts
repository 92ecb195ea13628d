/** Gain from a second server on the same port: the same load on one server, and on two with --reuse-port. */
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { type H2Load, measureWithH2load } from "./h2load.ts";
import { ratiosOf, report } from "./results.ts";
import { begin, stop } from "./start.ts";
import { grpc, measureInTurn, measureMs } from "./tools.ts";

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
    [alone, first].map(({ url, child }) => [
      url,
      async () => {
        const { callsPerSecond } = await measureWithH2load({ url, pid: child.pid ?? 0 }, check, measureMs);
        // Time for the server to close the connections that h2load dropped.
        await setTimeout(100);
        return callsPerSecond;
      },
    ]),
  );
  for (const { child } of [alone, first, second]) await stop(child);
  report("Health.Check of one server", one, { unit: "calls/s" });
  report("Health.Check of two servers on one port", two, { unit: "calls/s" });
  const ratios = ratiosOf(two, one);
  report("Two servers against one, Health.Check", ratios, { unit: "times", target: "at least 1.6" });
}
