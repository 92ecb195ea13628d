/** Joins the metrics of several event loops of one program to one set of numbers. */
import { AggregatorRegistry } from "prom-client";
import type { Exposition, MetricsDump } from "./metrics.ts";

/** Metrics of the whole program, which each event loop reports alike. */
const ofProgram = /^process_|^nodejs_version_info$/;
/** Callers notice the slowest event loop. */
const ofSlowest = /^nodejs_eventloop_lag_/;

/** Joins the metrics of event loops: counters and histograms are summed. */
export async function joinMetrics(dumps: readonly MetricsDump[]): Promise<Exposition> {
  const registry = AggregatorRegistry.aggregate(dumps.map((dump) => dump.map(withRule)));
  return { contentType: registry.contentType, text: await registry.metrics() };
}

/** Keeps what an event loop has counted, after it ended. A counter must not go down. */
export function keepCounts(dump: MetricsDump): MetricsDump {
  return dump.filter(
    ({ name, type }) => !ofProgram.test(name) && ["counter", "histogram"].includes(String(type)),
  );
}

function withRule(metric: MetricsDump[number]): MetricsDump[number] {
  if (ofProgram.test(metric.name)) return { ...metric, aggregator: "first" };
  return ofSlowest.test(metric.name) ? { ...metric, aggregator: "max" } : metric;
}
