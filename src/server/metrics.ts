/** The metrics of the server, as Prometheus reads them from GET /metrics. */
import { Code } from "@connectrpc/connect";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** Counts calls. */
export interface Metrics {
  callStarted(method: string): void;
  /** @param code undefined for a call that succeeded */
  callEnded(method: string, code: Code | undefined, durationMs: number): void;
  /** Counts a call that was refused before any work. */
  callRefused(method: string): void;
  /** Counts a transaction of the store, from its turn to write until it is on disk, and the calls that shared it. */
  storeCommitted(durationMs: number, calls: number): void;
  /** Counts a response that was dropped because its client read nothing. */
  responseDropped(): void;
  /** Exposes the bytes that unfinished requests hold in memory. */
  watchBuffers(buffers: { readonly heldBytes: number }): void;
  /** Exposes which library computes, as the labels of a series that is always 1. */
  nameProvider(provider: NamedProvider): void;
  /** Exposes how much work waits and how much was refused. */
  watchQueue(watched: { readonly queue: WatchedQueue; readonly passwords: WatchedLane }): void;
  /** The content type and the text of the exposition. */
  expose(): Promise<{ contentType: string; text: string }>;
}

/** The cryptographic provider, its libraries, and which of their code runs on this processor. */
export interface NamedProvider {
  readonly name: string;
  readonly version: string;
  readonly cpuPath: string | undefined;
}

/** The work that waits: operations, and milliseconds before a new quick or slow operation would begin. */
export interface WatchedQueue {
  readonly depth: number;
  readonly expectedWaitMs: number;
  readonly expectedSlowWaitMs: number;
  readonly quick: WatchedLane;
  readonly slow: WatchedLane;
}

/** One lane: the pieces of work that wait, those that were refused, and the callers with work in it. */
export interface WatchedLane {
  readonly waiting: number;
  readonly refused: number;
  readonly callers: number;
}

/** Upper bounds of the duration buckets, in seconds. */
const durationBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Creates the metrics of one server, separate from those of other servers in the process. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const ended = new Counter({
    name: "qsp_calls_total",
    help: "Calls that ended, by RPC and gRPC code.",
    labelNames: ["method", "code"],
    registers: [registry],
  });
  const running = new Gauge({
    name: "qsp_calls_running",
    help: "Calls that run now, by RPC.",
    labelNames: ["method"],
    registers: [registry],
  });
  const duration = new Histogram({
    name: "qsp_call_duration_seconds",
    help: "Seconds from the first header to the last byte that the call produced, by RPC.",
    labelNames: ["method"],
    buckets: durationBuckets,
    registers: [registry],
  });
  const commit = new Histogram({
    name: "qsp_store_commit_seconds",
    help: "Seconds from a transaction's turn to write to its last byte on the disk.",
    buckets: durationBuckets,
    registers: [registry],
  });
  const commitCalls = new Counter({
    name: "qsp_store_commit_calls_total",
    help: "Calls that wrote; divided by the count of qsp_store_commit_seconds, how many share a transaction.",
    registers: [registry],
  });
  const dropped = new Counter({
    name: "qsp_responses_dropped_total",
    help: "Responses and connections that were given up because the client read nothing for --max-write-ms.",
    registers: [registry],
  });
  // Looking a series up by its labels costs more than counting; RPCs are few and known.
  const seriesOf = new Map<
    string,
    { running: Gauge.Internal<"method">; duration: Histogram.Internal<"method"> }
  >();
  const findSeries = (method: string) => {
    let series = seriesOf.get(method);
    if (series === undefined) {
      series = { running: running.labels(method), duration: duration.labels(method) };
      seriesOf.set(method, series);
    }
    return series;
  };
  return {
    callStarted: (method) => findSeries(method).running.inc(),
    callEnded: (method, code, durationMs) => {
      const series = findSeries(method);
      series.running.dec();
      series.duration.observe(durationMs / 1000);
      ended.inc({ method, code: code === undefined ? "OK" : Code[code] });
    },
    callRefused: (method) => ended.inc({ method, code: Code[Code.ResourceExhausted] }),
    storeCommitted: (durationMs, calls) => {
      commit.observe(durationMs / 1000);
      commitCalls.inc(calls);
    },
    responseDropped: () => dropped.inc(),
    watchBuffers: (buffers) => {
      new Gauge({
        name: "qsp_buffered_bytes",
        help: "Bytes that unfinished requests hold in memory.",
        registers: [registry],
        collect() {
          this.set(buffers.heldBytes);
        },
      });
    },
    nameProvider: ({ name, version, cpuPath = "" }) => {
      const info = new Gauge({
        name: "qsp_crypto_provider_info",
        help: "Who computes: the provider, its libraries, and which code they run for ML-DSA and ML-KEM.",
        labelNames: ["provider", "version", "cpu"],
        registers: [registry],
      });
      info.set({ provider: name, version, cpu: cpuPath }, 1);
    },
    watchQueue: ({ queue, passwords }) => {
      const lanes = Object.entries({ quick: queue.quick, slow: queue.slow, passwords });
      const labelNames = ["lane"];
      new Gauge({
        name: "qsp_lane_waiting",
        help: "Pieces of work that wait for a thread, by lane: quick, slow, passwords.",
        labelNames,
        registers: [registry],
        collect() {
          for (const [lane, { waiting }] of lanes) this.set({ lane }, waiting);
        },
      });
      new Gauge({
        name: "qsp_lane_callers",
        help: "Callers that have work in a lane; they are served in turn.",
        labelNames,
        registers: [registry],
        collect() {
          for (const [lane, { callers }] of lanes) this.set({ lane }, callers);
        },
      });
      new Counter({
        name: "qsp_lane_refused_total",
        help: "Pieces of work that were refused because their caller's work would wait too long, by lane.",
        labelNames,
        registers: [registry],
        collect() {
          this.reset();
          for (const [lane, { refused }] of lanes) this.inc({ lane }, refused);
        },
      });
      new Gauge({
        name: "qsp_crypto_queue_depth",
        help: "Cryptographic operations that were asked for and have not ended.",
        registers: [registry],
        collect() {
          this.set(queue.depth);
        },
      });
      new Gauge({
        name: "qsp_crypto_queue_wait_seconds",
        help: "Seconds that an operation would wait before it begins, as far as one can tell.",
        registers: [registry],
        collect() {
          this.set(queue.expectedWaitMs / 1000);
        },
      });
      new Gauge({
        name: "qsp_crypto_queue_slow_wait_seconds",
        help: "The same for slow operations, such as signatures of SLH-DSA, which wait in a lane of their own.",
        registers: [registry],
        collect() {
          this.set(queue.expectedSlowWaitMs / 1000);
        },
      });
    },
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}
