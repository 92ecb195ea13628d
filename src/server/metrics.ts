/** The server's Prometheus metrics (GET /metrics). */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { SpanCounts } from "../calls/span-counts.ts";
import type { ReasonName } from "../errors.ts";
import { type CallMetrics, createCallMetrics } from "./call-metrics.ts";
import type { ConnectionLimit } from "./connection-shares.ts";
import { exposeQueue, type WatchedLane, type WatchedQueue } from "./queue-metrics.ts";

/** Counts calls and what they wait for. */
export interface Metrics extends CallMetrics {
  /**
   * Counts a store transaction, timed from its turn to write until it is on disk, and the calls that shared
   * it.
   */
  storeCommitted(durationMs: number, calls: number): void;
  /** Counts a refusal missing from the audit log because its user had too many. */
  refusalUnrecorded(): void;
  /** Exposes whether the store is writable. */
  storeWritable(isWritable: boolean): void;
  /** Counts a response dropped because its client read nothing. */
  responseDropped(): void;
  /** Counts a connection closed on arrival. */
  connectionRefused(limit: ConnectionLimit): void;
  /** Exposes the bytes that unfinished requests hold in memory. */
  watchBuffers(buffers: { readonly heldBytes: number }): void;
  /** Exposes the crypto library as the labels of a series that is always 1. */
  nameProvider(provider: NamedProvider): void;
  /** Exposes the build as the labels of a series that is always 1. */
  nameBuild(build: NamedBuild): void;
  /** Exposes the outcomes of trace spans. */
  watchSpans(tracing: { readonly counts: SpanCounts }): void;
  /** Exposes how much work is waiting and how much was refused. */
  watchQueue(watched: { readonly queue: WatchedQueue; readonly passwords: WatchedLane }): void;
  /**
   * Counts the entries of a verifiable log and those under its latest checkpoint, and times the signing of a
   * new one.
   */
  logPublished(log: string, entries: number, published: number, seconds: number | undefined): void;
  /** Counts a witness cosignature. */
  logCosigned(log: string): void;
  /** Exposes failures of background work from 0 on. */
  backgroundStarted(work: string): void;
  /** Counts a failure of background work. */
  backgroundFailed(work: string): void;
  /** Exposes how much work is overdue, and for how long the oldest item has been. */
  workOverdue(work: string, items: number, oldestSeconds: number): void;
  /** Counts an error that no code caught. */
  uncaughtError(): void;
  /** Counts a request refused for its head, before its call began. */
  requestRefused(reason: ReasonName): void;
  /** Renders the metrics for a scrape. */
  expose(): Promise<Exposition>;
}

/** A rendered scrape. */
export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/** The crypto provider, its libraries, and the implementations that they use on this processor. */
export interface NamedProvider {
  readonly name: string;
  readonly version: string;
  readonly cpuPath: string | undefined;
}

/** The running build. */
export interface NamedBuild {
  readonly version: string;
  /** The commit of the build; empty if unknown. */
  readonly commit: string;
}

/** Upper bounds of the duration buckets, in seconds. */
const durationBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Reasons for refusing a request head (src/server/request-head.ts). */
const headReasons: readonly ReasonName[] = [
  "METADATA_TOO_LARGE",
  "HTTP_INVALID",
  "HOST_NOT_ALLOWED",
  "CROSS_SITE_REFUSED",
  "MEDIA_TYPE_UNSUPPORTED",
];

const connectionLimits: readonly ConnectionLimit[] = ["total", "client", "rate"];

/** Creates the metrics of one server, separate from other servers in the process. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const calls = createCallMetrics(registry, durationBuckets);
  const dropped = new Counter({
    name: "qsp_responses_dropped_total",
    help: "Responses and connections dropped because the client read nothing for --max-write-ms.",
    registers: [registry],
  });
  const refused = new Counter({
    name: "qsp_requests_refused_total",
    help: "Requests refused for their head before a call began, by the reason in docs/errors.md.",
    labelNames: ["reason"],
    registers: [registry],
  });
  const uncaught = new Counter({
    name: "qsp_uncaught_errors_total",
    help: "Uncaught errors. After a connection error the server keeps running, after any other it stops.",
    registers: [registry],
  });
  const closed = new Counter({
    name: "qsp_connections_refused_total",
    help: "Connections closed, by limit: total (--max-connections), client (--max-connections-per-client) or rate (--max-connections-per-second).",
    labelNames: ["limit"],
    registers: [registry],
  });
  // Exposed before the first refusal: a rate needs two samples.
  for (const reason of headReasons) refused.inc({ reason }, 0);
  for (const limit of connectionLimits) closed.inc({ limit }, 0);
  return {
    ...calls,
    ...createStoreMetrics(registry),
    ...createLogMetrics(registry),
    ...createSpanMetrics(registry),
    ...createBackgroundMetrics(registry),
    responseDropped: () => dropped.inc(),
    connectionRefused: (limit) => closed.inc({ limit }),
    uncaughtError: () => uncaught.inc(),
    requestRefused: (reason) => refused.inc({ reason }),
    watchBuffers: (buffers) => {
      new Gauge({
        name: "qsp_buffered_bytes",
        help: "Bytes of memory held by unfinished requests.",
        registers: [registry],
        collect() {
          this.set(buffers.heldBytes);
        },
      });
    },
    ...createInfoMetrics(registry),
    watchQueue: (watched) => exposeQueue(registry, watched),
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

function createStoreMetrics(
  registry: Registry,
): Pick<Metrics, "storeCommitted" | "storeWritable" | "refusalUnrecorded"> {
  const commit = new Histogram({
    name: "qsp_store_commit_seconds",
    help: "Seconds from the start of a write transaction to its last byte on disk.",
    buckets: durationBuckets,
    registers: [registry],
  });
  const commitCalls = new Counter({
    name: "qsp_store_commit_calls_total",
    help: "Calls that wrote. Divide by the count of qsp_store_commit_seconds to get the calls per transaction.",
    registers: [registry],
  });
  const unrecorded = new Counter({
    name: "qsp_refusals_unrecorded_total",
    help: "Refused calls missing from the audit log, because their user had too many in an hour.",
    registers: [registry],
  });
  const writable = new Gauge({
    name: "qsp_store_writable",
    help: "1 while the store is writable, otherwise 0.",
    registers: [registry],
  });
  writable.set(1);
  return {
    refusalUnrecorded: () => unrecorded.inc(),
    storeWritable: (isWritable) => writable.set(isWritable ? 1 : 0),
    storeCommitted: (durationMs, calls) => {
      commit.observe(durationMs / 1000);
      commitCalls.inc(calls);
    },
  };
}

function createLogMetrics(registry: Registry): Pick<Metrics, "logPublished" | "logCosigned"> {
  const logSize = new Gauge({
    name: "qsp_log_entries",
    help: "Entries of a verifiable log at the last poll.",
    labelNames: ["log"],
    registers: [registry],
  });
  const logPublishedSize = new Gauge({
    name: "qsp_log_published_entries",
    help: "Entries of a verifiable log covered by its latest checkpoint.",
    labelNames: ["log"],
    registers: [registry],
  });
  const logSeconds = new Histogram({
    name: "qsp_log_sign_seconds",
    help: "Seconds to update the tree of a verifiable log, sign its checkpoint and store it.",
    labelNames: ["log"],
    buckets: durationBuckets,
    registers: [registry],
  });
  const logCosignatures = new Counter({
    name: "qsp_log_cosignatures_total",
    help: "Witness cosignatures added to checkpoints.",
    labelNames: ["log"],
    registers: [registry],
  });
  return {
    logPublished(log, entries, published, seconds) {
      logSize.set({ log }, entries);
      logPublishedSize.set({ log }, published);
      if (seconds !== undefined) logSeconds.observe({ log }, seconds);
    },
    logCosigned: (log) => logCosignatures.inc({ log }),
  };
}

function createBackgroundMetrics(
  registry: Registry,
): Pick<Metrics, "backgroundStarted" | "backgroundFailed" | "workOverdue"> {
  const failures = new Counter({
    name: "qsp_background_failures_total",
    help: "Failures of background work, such as scheduled destruction. Each is logged unless it repeats.",
    labelNames: ["work"],
    registers: [registry],
  });
  // All servers on a store see the same value.
  const overdue = new Gauge({
    name: "qsp_overdue_work",
    help: "Items of scheduled work that are more than a minute overdue.",
    labelNames: ["work"],
    registers: [registry],
  });
  const oldest = new Gauge({
    name: "qsp_overdue_work_seconds",
    help: "Seconds for which the oldest overdue item has been due; 0 if there is none.",
    labelNames: ["work"],
    registers: [registry],
  });
  return {
    backgroundStarted: (work) => failures.inc({ work }, 0),
    backgroundFailed: (work) => failures.inc({ work }),
    workOverdue(work, items, oldestSeconds) {
      overdue.set({ work }, items);
      oldest.set({ work }, oldestSeconds);
    },
  };
}

function createSpanMetrics(registry: Registry): Pick<Metrics, "watchSpans"> {
  // Exposed even without tracing, so that alerts have data.
  let tracing: { readonly counts: SpanCounts } = {
    counts: { exported: 0, failed: 0, dropped: 0, limited: 0 },
  };
  new Counter({
    name: "qsp_trace_spans_total",
    help: "Trace spans: exported, failed (rejected by the collector) and dropped (the queue was full).",
    labelNames: ["outcome"],
    registers: [registry],
    collect() {
      const { exported, failed, dropped } = tracing.counts;
      this.reset();
      for (const [outcome, spans] of Object.entries({ exported, failed, dropped }))
        this.inc({ outcome }, spans);
    },
  });
  new Counter({
    name: "qsp_trace_callers_limited_total",
    help: "Calls not traced although their caller records a trace, because of --max-followed-traces.",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(tracing.counts.limited);
    },
  });
  return {
    watchSpans: (watched) => {
      tracing = watched;
    },
  };
}

function createInfoMetrics(registry: Registry): Pick<Metrics, "nameProvider" | "nameBuild"> {
  return {
    nameProvider: ({ name, version, cpuPath = "" }) => {
      const info = new Gauge({
        name: "qsp_crypto_provider_info",
        help: "The crypto provider, its libraries, and the implementations that they use for ML-DSA and ML-KEM.",
        labelNames: ["provider", "version", "cpu"],
        registers: [registry],
      });
      info.set({ provider: name, version, cpu: cpuPath }, 1);
    },
    nameBuild: ({ version, commit }) => {
      const info = new Gauge({
        name: "qsp_build_info",
        help: "The running build: version, commit and Node.js version.",
        labelNames: ["version", "commit", "node"],
        registers: [registry],
      });
      info.set({ version, commit, node: process.versions.node }, 1);
    },
  };
}
