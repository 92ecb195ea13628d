/** Computes a server's activity between two readings of its metrics. */
import { estimateQuantile, type Sample } from "./prometheus-text.ts";

/** The metrics at one point in time. */
export interface Snapshot {
  /** Milliseconds from a monotonic clock. */
  readonly atMs: number;
  readonly samples: readonly Sample[];
}

/** The activity of one RPC. */
export interface CallActivity {
  /** For example "kms.KmsService/Sign". */
  readonly call: string;
  readonly callsPerSecond: number;
  /** Calls per second that ended with a code other than OK. */
  readonly failuresPerSecond: number;
  readonly inFlight: number;
  /** Since the server started. */
  readonly calls: number;
  readonly latency: Latency;
}

/** Latency quantiles in milliseconds; undefined without calls, Infinity above the last bucket. */
export interface Latency {
  readonly p50Ms: number | undefined;
  readonly p95Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

/** The activity of a server. Numbers that the server does not expose are undefined. */
export interface Activity {
  /** Seconds between the two readings. */
  readonly seconds: number;
  readonly callsPerSecond: number;
  readonly inFlight: number;
  readonly latency: Latency;
  /** Failures per second, by code. */
  readonly failures: Readonly<Record<string, number>>;
  readonly queue: {
    /** Queued and running cryptographic operations. */
    readonly depth: number | undefined;
    readonly waitMs: number | undefined;
    /** Queued tasks, by lane. */
    readonly waiting: Readonly<Record<string, number>>;
    readonly refusedPerSecond: number;
  };
  /** Audit entries per second added to the verifiable log. */
  readonly auditPerSecond: number | undefined;
  readonly memoryBytes: number | undefined;
  /** CPU cores in use: 1 is one full core. */
  readonly cpuCores: number | undefined;
  readonly eventLoopLagMs: number | undefined;
  /** Busiest first. */
  readonly calls: readonly CallActivity[];
}

/** Compares two readings of the same server. */
export function compareSnapshots(before: Snapshot, after: Snapshot): Activity {
  const seconds = Math.max((after.atMs - before.atMs) / 1000, 0.001);
  const [old, now] = [new Reading(before.samples), new Reading(after.samples)];
  const rate = (name: string, where: Where = {}): number => increase(old, now, name, where) / seconds;
  const calls = now
    .values("qsp_calls_total", "method")
    .concat(now.values("qsp_calls_running", "method"))
    .filter((call, i, all) => all.indexOf(call) === i)
    .map((call): CallActivity => {
      const of = { method: call };
      const callsPerSecond = rate("qsp_calls_total", of);
      return {
        call,
        callsPerSecond,
        failuresPerSecond: callsPerSecond - rate("qsp_calls_total", { ...of, code: "OK" }),
        inFlight: now.sum("qsp_calls_running", of) ?? 0,
        calls: now.sum("qsp_calls_total", of) ?? 0,
        latency: measureLatency(old, now, of),
      };
    })
    .sort((a, b) => b.callsPerSecond - a.callsPerSecond || b.calls - a.calls || (a.call < b.call ? -1 : 1));
  const codes = now.values("qsp_calls_total", "code").filter((code) => code !== "OK");
  const failures = codes.map((code) => [code, rate("qsp_calls_total", { code })] as const);
  const lanes = now.values("qsp_lane_waiting", "lane");
  const cpuSeconds = now.sum("process_cpu_seconds_total");
  const audit = { log: "audit" };
  return {
    seconds,
    callsPerSecond: rate("qsp_calls_total"),
    inFlight: now.sum("qsp_calls_running") ?? 0,
    latency: measureLatency(old, now, {}),
    failures: Object.fromEntries(failures.filter(([, perSecond]) => perSecond > 0)),
    queue: {
      depth: now.sum("qsp_crypto_queue_depth"),
      waitMs: toMs(now.sum("qsp_crypto_queue_wait_seconds")),
      waiting: Object.fromEntries(lanes.map((lane) => [lane, now.sum("qsp_lane_waiting", { lane }) ?? 0])),
      refusedPerSecond: rate("qsp_lane_refused_total"),
    },
    auditPerSecond:
      now.sum("qsp_log_entries", audit) === undefined ? undefined : rate("qsp_log_entries", audit),
    memoryBytes: now.sum("process_resident_memory_bytes"),
    cpuCores: cpuSeconds === undefined ? undefined : rate("process_cpu_seconds_total"),
    eventLoopLagMs: toMs(now.sum("nodejs_eventloop_lag_p99_seconds")),
    calls,
  };
}

/** Labels that a sample must have. */
type Where = Readonly<Record<string, string>>;

/** One reading, with its samples indexed by name. */
class Reading {
  readonly #byName = new Map<string, Sample[]>();

  // Node 20, which the npm package supports, has no Map.groupBy.
  constructor(samples: readonly Sample[]) {
    for (const sample of samples) {
      const same = this.#byName.get(sample.name);
      if (same === undefined) this.#byName.set(sample.name, [sample]);
      else same.push(sample);
    }
  }

  find(name: string, where: Where): readonly Sample[] {
    const wanted = Object.entries(where);
    const samples = this.#byName.get(name) ?? [];
    return samples.filter(({ labels }) => wanted.every(([label, value]) => labels.get(label) === value));
  }

  /** @returns undefined if no sample matches */
  sum(name: string, where: Where = {}): number | undefined {
    const found = this.find(name, where);
    return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
  }

  /** Lists the values of a label. */
  values(name: string, label: string): string[] {
    return [...new Set(this.find(name, {}).map(({ labels }) => labels.get(label) ?? ""))];
  }
}

/** Computes a counter's growth. A smaller value means that the server was restarted and the counter began at zero. */
function increase(old: Reading, now: Reading, name: string, where: Where): number {
  const [was, is] = [old.sum(name, where) ?? 0, now.sum(name, where) ?? 0];
  return is >= was ? is - was : is;
}

function measureLatency(old: Reading, now: Reading, where: Where): Latency {
  const name = "qsp_call_duration_seconds_bucket";
  const buckets = now
    .values(name, "le")
    .map((le) => ({
      upToSeconds: le === "+Inf" ? Infinity : Number(le),
      count: increase(old, now, name, { ...where, le }),
    }))
    .sort((a, b) => a.upToSeconds - b.upToSeconds);
  const [p50Ms, p95Ms, p99Ms] = [0.5, 0.95, 0.99].map((share) => toMs(estimateQuantile(buckets, share)));
  return { p50Ms, p95Ms, p99Ms };
}

function toMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}
