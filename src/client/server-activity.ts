/** Computes what a server did between two readings of its metrics. */
import { estimateQuantile, type Sample } from "./prometheus-text.ts";

/** The metrics at one time. */
export interface Snapshot {
  /** Milliseconds of a clock that only goes forward. */
  readonly atMs: number;
  readonly samples: readonly Sample[];
}

/** The activity of one call. */
export interface CallActivity {
  /** "kms.KmsService/Sign". */
  readonly call: string;
  readonly callsPerSecond: number;
  /** Calls that ended with a code other than OK. */
  readonly failuresPerSecond: number;
  readonly inFlight: number;
  /** Since the server started. */
  readonly calls: number;
  readonly latency: Latency;
}

/** Quantiles in milliseconds; undefined without a call, Infinity above the last bucket. */
export interface Latency {
  readonly p50Ms: number | undefined;
  readonly p95Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

/** The activity of a server. A number that the server does not expose is undefined. */
export interface Activity {
  /** Seconds between the readings. */
  readonly seconds: number;
  readonly callsPerSecond: number;
  readonly inFlight: number;
  readonly latency: Latency;
  /** Failures per second, by code. */
  readonly failures: Readonly<Record<string, number>>;
  readonly queue: {
    /** Cryptographic operations that wait or run. */
    readonly depth: number | undefined;
    readonly waitMs: number | undefined;
    /** Pieces of work that wait, by lane. */
    readonly waiting: Readonly<Record<string, number>>;
    readonly refusedPerSecond: number;
  };
  /** Audit entries per second that the verifiable log has got. */
  readonly auditPerSecond: number | undefined;
  readonly memoryBytes: number | undefined;
  /** Cores in use: 1 is one core. */
  readonly cpuCores: number | undefined;
  readonly eventLoopLagMs: number | undefined;
  /** The busiest first. */
  readonly calls: readonly CallActivity[];
}

/** Compares two readings of one server. */
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

/** One reading, with its samples by name. */
class Reading {
  readonly #byName = new Map<string, Sample[]>();

  // Node 20, where the npm package runs too, has no Map.groupBy.
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

  /** @returns undefined if there is no such sample */
  sum(name: string, where: Where = {}): number | undefined {
    const found = this.find(name, where);
    return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
  }

  /** The values of a label. */
  values(name: string, label: string): string[] {
    return [...new Set(this.find(name, {}).map(({ labels }) => labels.get(label) ?? ""))];
  }
}

/** Computes by how much a counter has grown. A counter that is smaller began anew: the server was restarted. */
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
