/**
 * Call metrics. Every call is counted here, so counting costs a few additions; the text is rendered on
 * scrape.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { Metric, Registry } from "prom-client";
import { type ReasonName, reasons } from "../errors.ts";

export type CallMetrics = ReturnType<typeof createCallMetrics>;

export interface CallFailure {
  readonly code: Code;
  /** Undefined for an error without one of our reasons. */
  readonly reason: string | undefined;
}

interface Counts {
  readonly method: string;
  running: number;
  /** Ended calls by Code; 0 is success. */
  readonly ended: number[];
  /** Failed calls by reason. Bounded by the catalogue of reasons. */
  readonly failed: Map<string, number>;
  /** Calls by duration bucket: at most the bound at this index, and above the previous bound. */
  readonly byDuration: number[];
  durations: number;
  durationSumMs: number;
}

/** A Prometheus sample. */
interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * Registers the call metrics.
 *
 * @param boundsSeconds upper bounds of the duration buckets, ascending
 */
export function createCallMetrics(registry: Registry, boundsSeconds: readonly number[]) {
  const counts = new Map<DescMethod, Counts>();
  const boundsMs = boundsSeconds.map((seconds) => seconds * 1000);
  const create = (method: DescMethod): Counts => ({
    method: `${method.parent.typeName}/${method.name}`,
    running: 0,
    ended: Array<number>(codes).fill(0),
    failed: new Map(),
    byDuration: Array<number>(boundsMs.length + 1).fill(0),
    durations: 0,
    durationSumMs: 0,
  });
  const find = (method: DescMethod): Counts => counts.getOrInsertComputed(method, create);
  const expose = (name: string, type: string, help: string, sample: (one: Counts) => Sample[]): void => {
    const get = async () => ({
      name,
      type,
      help,
      values: [...counts.values()].flatMap(sample),
    });
    // The registry reads only the name and the samples of a metric.
    registry.registerMetric({ name, get, reset: () => counts.clear() } as unknown as Metric);
  };

  expose("qsp_calls_total", "counter", "Finished calls, by RPC and gRPC code.", ({ method, ended }) =>
    ended.flatMap((value, code) =>
      value > 0 ? [{ labels: { method, code: Code[code] ?? "OK" }, value }] : [],
    ),
  );
  expose(
    "qsp_call_failures_total",
    "counter",
    "Failed calls, by RPC and by the reason in docs/errors.md; NONE is an error without a reason.",
    ({ method, failed }) => [...failed].map(([reason, value]) => ({ labels: { method, reason }, value })),
  );
  expose("qsp_calls_running", "gauge", "Calls in progress, by RPC.", ({ method, running }) => [
    { labels: { method }, value: running },
  ]);
  expose(
    "qsp_call_duration_seconds",
    "histogram",
    "Seconds from the first header to the last byte that the call produced, by RPC.",
    (one) => listDurations(one, boundsSeconds),
  );

  return {
    callStarted: (method: DescMethod): void => {
      find(method).running += 1;
    },
    /** @param failure undefined for a successful call */
    callEnded: (method: DescMethod, failure: CallFailure | undefined, durationMs: number): void => {
      const found = find(method);
      found.running -= 1;
      const code = failure?.code ?? 0;
      found.ended[code] = (found.ended[code] ?? 0) + 1;
      if (failure !== undefined) countFailure(found, failure.reason);
      let bucket = 0;
      while (bucket < boundsMs.length && durationMs > (boundsMs[bucket] ?? 0)) bucket += 1;
      found.byDuration[bucket] = (found.byDuration[bucket] ?? 0) + 1;
      found.durations += 1;
      found.durationSumMs += durationMs;
    },
    /** Counts a call that was refused before any work. */
    callRefused: (method: DescMethod, reason: ReasonName): void => {
      const found = find(method);
      const { code } = reasons[reason];
      found.ended[code] = (found.ended[code] ?? 0) + 1;
      countFailure(found, reason);
    },
  };
}

/** Label value for an error without a reason. */
const noReason = "NONE";

function countFailure({ failed }: Counts, reason: string = noReason): void {
  failed.set(reason, (failed.get(reason) ?? 0) + 1);
}

/** One more than the highest gRPC code. */
const codes = 17;

/** Prometheus buckets are cumulative. */
function listDurations(
  { method, byDuration, durations, durationSumMs }: Counts,
  boundsSeconds: readonly number[],
): Sample[] {
  const metricName = "qsp_call_duration_seconds";
  let below = 0;
  const buckets = boundsSeconds.map((le, index) => {
    below += byDuration[index] ?? 0;
    return { metricName: `${metricName}_bucket`, labels: { le, method }, value: below };
  });
  return [
    ...buckets,
    { metricName: `${metricName}_bucket`, labels: { le: "+Inf", method }, value: durations },
    { metricName: `${metricName}_sum`, labels: { method }, value: durationSumMs / 1000 },
    { metricName: `${metricName}_count`, labels: { method }, value: durations },
  ];
}
