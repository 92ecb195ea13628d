/** Metrics that show why calls fail and which build is running. */
import { describe, expect, it } from "vitest";
import { reasons } from "../../src/errors.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { outcomeOf } from "../support/refusal.ts";
import { connectProbe, type ProbeBehaviour, serveProbe } from "./probe.ts";

async function serveCounting(behaviour: ProbeBehaviour) {
  const metrics = createMetrics();
  const { url } = await serveProbe(behaviour, {}, { metrics });
  const readFailures = async (): Promise<string[]> => {
    const { text } = await metrics.expose();
    return text.split("\n").filter((line) => line.startsWith("qsp_call_failures_total{"));
  };
  return { url, readFailures, metrics };
}

describe("the metrics of failed calls", () => {
  it("have no series for successful calls", async () => {
    const { url, readFailures } = await serveCounting({ ask: () => ({}) });
    await connectProbe("gRPC", url).ask({});
    expect(await readFailures()).toEqual([]);
  });

  it("contain only reasons from the catalogue, whatever a handler throws", async () => {
    let round = 0;
    const { url, readFailures } = await serveCounting({
      ask() {
        round += 1;
        throw new Error(`a cause that differs each time: ${round}`);
      },
    });
    for (let i = 0; i < 5; i += 1) await outcomeOf(connectProbe("gRPC", url).ask({}));
    const lines = await readFailures();
    expect(lines).toEqual(['qsp_call_failures_total{method="probing.Probe/Ask",reason="INTERNAL"} 5']);
    expect(Object.keys(reasons)).toContain("INTERNAL");
  });

  it("name the build, its commit and the Node.js version", async () => {
    const { metrics } = await serveCounting({});
    metrics.nameBuild({ version: "1.2.3", commit: "0123456789ab" });
    const { text } = await metrics.expose();
    expect(text).toContain(
      `qsp_build_info{version="1.2.3",commit="0123456789ab",node="${process.versions.node}"} 1`,
    );
  });
});
