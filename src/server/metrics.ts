/** The server's Prometheus metrics (GET /metrics). */
import type { ConnectError } from "@connectrpc/connect";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { SpanCounts } from "../calls/call-span.ts";
import { findCoreReason, type ReasonName } from "../errors.ts";
import { createCallMetrics } from "./call-metrics.ts";
import type { ConnectionLimit } from "./connection-shares.ts";

/** Counts calls and what they wait for. */
export type Metrics = ReturnType<typeof createMetrics>;

/** Waiting work: operations, and milliseconds until a new quick or slow operation would begin. */
export interface WatchedQueue {
  readonly depth: number;
  readonly expectedWaitMs: number;
  readonly expectedSlowWaitMs: number;
  readonly quick: WatchedLane;
  readonly slow: WatchedLane;
}

/** One lane: waiting pieces of work, refused ones, and callers with work in it. */
export interface WatchedLane {
  readonly waiting: number;
  readonly refused: number;
  readonly callers: number;
}

/** All work of the crypto threads. */
interface WatchedWork {
  readonly queue: WatchedQueue;
  readonly passwords: WatchedLane;
}

/** Tracing, which counts its spans. */
interface Counting {
  readonly counts: SpanCounts;
}

/** A gauge that is read at each scrape. A scrape while it cannot be read omits it. */
export interface WatchedGauge {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** Returns a bounded number of series. */
  readonly read: () => Promise<
    readonly { readonly labels: Record<string, string>; readonly value: number }[]
  >;
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
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const calls = createCallMetrics(registry, durationBuckets);
  const add = createRegistrar(registry);
  const dropped = add.counter(
    "qsp_responses_dropped_total",
    "Responses and connections dropped because the client read nothing for --max-write-ms.",
  );
  const refused = add.counter(
    "qsp_requests_refused_total",
    "Requests refused for their head before a call began, by the reason in docs/errors.md.",
    "reason",
  );
  const uncaught = add.counter(
    "qsp_uncaught_errors_total",
    "Uncaught errors. After a connection error the server keeps running, after any other it stops.",
  );
  const closed = add.counter(
    "qsp_connections_refused_total",
    "Connections closed, by limit: total (--max-connections), client (--max-connections-per-client) or rate (--max-connections-per-second).",
    "limit",
  );
  // Exposed before the first refusal: a rate needs two samples.
  for (const reason of headReasons) refused.inc({ reason }, 0);
  for (const limit of connectionLimits) closed.inc({ limit }, 0);
  return {
    ...calls,
    ...createStoreMetrics(add),
    ...createLogMetrics(add),
    ...createSpanMetrics(add),
    ...createBackgroundMetrics(add),
    ...createServiceMetrics(registry, add),
    /** Counts a response dropped because its client read nothing. */
    responseDropped: () => dropped.inc(),
    /** Counts a connection closed on arrival. */
    connectionRefused: (limit: ConnectionLimit) => closed.inc({ limit }),
    /** Counts an error that no code caught. */
    uncaughtError: () => uncaught.inc(),
    /** Counts a request refused for its head, before its call began. */
    requestRefused(error: ConnectError): void {
      const reason = findCoreReason(error);
      if (reason !== undefined) refused.inc({ reason });
    },
    /** Exposes the bytes that unfinished requests hold in memory. */
    watchBuffers: (buffers: { readonly heldBytes: number }) =>
      add.readGauge(
        "qsp_buffered_bytes",
        "Bytes of memory held by unfinished requests.",
        () => buffers.heldBytes,
      ),
    /** Exposes the crypto library as the labels of a series that is always 1. */
    nameProvider: ({ name, version, cpuPath = "" }: NamedProvider) =>
      add
        .gauge(
          "qsp_crypto_provider_info",
          "The crypto provider, its libraries, and the implementations that they use for ML-DSA and ML-KEM.",
          ...["provider", "version", "cpu"],
        )
        .set({ provider: name, version, cpu: cpuPath }, 1),
    /** Exposes the build as the labels of a series that is always 1. */
    nameBuild: ({ version, commit }: NamedBuild) =>
      add
        .gauge(
          "qsp_build_info",
          "The running build: version, commit and Node.js version.",
          ...["version", "commit", "node"],
        )
        .set({ version, commit, node: process.versions.node }, 1),
    /** Exposes how much work is waiting and how much was refused. */
    watchQueue: (watched: WatchedWork) => exposeQueue(add, watched),
    /** Renders the metrics for a scrape. */
    expose: async (): Promise<Exposition> => ({
      contentType: registry.contentType,
      text: await registry.metrics(),
    }),
  };
}

/** Values of a metric, read on each scrape: a single one, or one for each value of the label. */
type ReadValues = () => number | Readonly<Record<string, number>>;

/** Functions that add metrics to a registry. */
function createRegistrar(registry: Registry) {
  const registers = [registry];
  return {
    counter: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Counter({ name, help, labelNames, registers }),
    gauge: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Gauge({ name, help, labelNames, registers }),
    /** A histogram of seconds. */
    histogram: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Histogram({ name, help, labelNames, registers, buckets: durationBuckets }),
    readCounter(name: string, help: string, read: ReadValues, ...labelNames: string[]): void {
      new Counter({
        ...{ name, help, labelNames, registers },
        collect() {
          this.reset();
          for (const { labels, value } of listSamples(read(), labelNames)) this.inc(labels, value);
        },
      });
    },
    readGauge(name: string, help: string, read: ReadValues, ...labelNames: string[]): void {
      new Gauge({
        ...{ name, help, labelNames, registers },
        collect() {
          for (const { labels, value } of listSamples(read(), labelNames)) this.set(labels, value);
        },
      });
    },
  };
}

function listSamples(values: ReturnType<ReadValues>, [label = ""]: readonly string[]) {
  if (typeof values === "number") return [{ labels: {}, value: values }];
  return Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));
}

type Registrar = ReturnType<typeof createRegistrar>;

function createStoreMetrics(add: Registrar) {
  const commit = add.histogram(
    "qsp_store_commit_seconds",
    "Seconds from the start of a write transaction to its last byte on disk.",
  );
  const commitCalls = add.counter(
    "qsp_store_commit_calls_total",
    "Calls that wrote. Divide by the count of qsp_store_commit_seconds to get the calls per transaction.",
  );
  const unrecorded = add.counter(
    "qsp_refusals_unrecorded_total",
    "Refused calls missing from the audit log, because their user had too many in an hour.",
  );
  const writable = add.gauge("qsp_store_writable", "1 while the store is writable, otherwise 0.");
  writable.set(1);
  return {
    /** Counts a refusal missing from the audit log because its user had too many. */
    refusalUnrecorded: () => unrecorded.inc(),
    /** Exposes whether the store is writable. */
    storeWritable: (isWritable: boolean) => writable.set(isWritable ? 1 : 0),
    /**
     * Counts a store transaction, timed from its turn to write until it is on disk, and the calls that shared
     * it.
     */
    storeCommitted: (durationMs: number, calls: number) => {
      commit.observe(durationMs / 1000);
      commitCalls.inc(calls);
    },
  };
}

function createLogMetrics(add: Registrar) {
  const size = add.gauge("qsp_log_entries", "Entries of a verifiable log at the last poll.", "log");
  const publishedSize = add.gauge(
    "qsp_log_published_entries",
    "Entries of a verifiable log covered by its latest checkpoint.",
    "log",
  );
  const signing = add.histogram(
    "qsp_log_sign_seconds",
    "Seconds to update the tree of a verifiable log, sign its checkpoint and store it.",
    "log",
  );
  const cosignatures = add.counter(
    "qsp_log_cosignatures_total",
    "Witness cosignatures added to checkpoints.",
    "log",
  );
  return {
    /**
     * Counts the entries of a verifiable log and those under its latest checkpoint, and times the signing of a
     * new one.
     */
    logPublished(log: string, entries: number, published: number, seconds: number | undefined) {
      size.set({ log }, entries);
      publishedSize.set({ log }, published);
      if (seconds !== undefined) signing.observe({ log }, seconds);
    },
    /** Counts a witness cosignature. */
    logCosigned: (log: string) => cosignatures.inc({ log }),
  };
}

function createServiceMetrics(registry: Registry, add: Registrar) {
  return {
    /** Adds a gauge that a service reads at each scrape. */
    watchGauge: ({ name, help, labelNames, read }: WatchedGauge): void => {
      new Gauge({
        name,
        help,
        labelNames,
        registers: [registry],
        async collect() {
          const series = await read().catch(() => []);
          this.reset();
          for (const { labels, value } of series) this.set(labels, value);
        },
      });
    },
    /**
     * Adds a counter of a service, from 0 on.
     *
     * @returns a function that counts
     */
    addCounter: (name: string, help: string) => {
      const counter = add.counter(name, help);
      return () => counter.inc();
    },
  };
}

function createBackgroundMetrics(add: Registrar) {
  const failures = add.counter(
    "qsp_background_failures_total",
    "Failures of background work, such as scheduled destruction. Each is logged unless it repeats.",
    "work",
  );
  // All servers on a store see the same value.
  const overdue = add.gauge(
    "qsp_overdue_work",
    "Items of scheduled work that are more than a minute overdue.",
    "work",
  );
  const oldest = add.gauge(
    "qsp_overdue_work_seconds",
    "Seconds for which the oldest overdue item has been due; 0 if there is none.",
    "work",
  );
  return {
    /** Exposes failures of background work from 0 on. */
    backgroundStarted: (work: string) => failures.inc({ work }, 0),
    /** Counts a failure of background work. */
    backgroundFailed: (work: string) => failures.inc({ work }),
    /** Exposes how much work is overdue, and for how long the oldest item has been. */
    workOverdue(work: string, items: number, oldestSeconds: number) {
      overdue.set({ work }, items);
      oldest.set({ work }, oldestSeconds);
    },
  };
}

function createSpanMetrics(add: Registrar) {
  // Exposed even without tracing, so that alerts have data.
  let tracing: Counting = { counts: { exported: 0, failed: 0, dropped: 0, limited: 0 } };
  add.readCounter(
    "qsp_trace_spans_total",
    "Trace spans: exported, failed (rejected by the collector) and dropped (the queue was full).",
    () => {
      const { exported, failed, dropped } = tracing.counts;
      return { exported, failed, dropped };
    },
    "outcome",
  );
  add.readCounter(
    "qsp_trace_callers_limited_total",
    "Calls not traced although their caller records a trace, because of --max-followed-traces.",
    () => tracing.counts.limited,
  );
  return {
    /** Exposes the outcomes of trace spans. */
    watchSpans: (watched: Counting) => {
      tracing = watched;
    },
  };
}

/** Exposes the work queue in front of the crypto threads, and its lanes. */
function exposeQueue(add: Registrar, { queue, passwords }: WatchedWork): void {
  const ofLanes = (kind: keyof WatchedLane): ReadValues => {
    const { quick, slow } = queue;
    return () => ({ quick: quick[kind], slow: slow[kind], passwords: passwords[kind] });
  };
  add.readGauge(
    "qsp_lane_waiting",
    "Pieces of work waiting for a thread, by lane: quick, slow, passwords.",
    ofLanes("waiting"),
    "lane",
  );
  add.readGauge(
    "qsp_lane_callers",
    "Callers with work in a lane. The server serves them in turn.",
    ofLanes("callers"),
    "lane",
  );
  add.readCounter(
    "qsp_lane_refused_total",
    "Pieces of work refused because the caller's work would have waited too long, by lane.",
    ofLanes("refused"),
    "lane",
  );
  add.readGauge("qsp_crypto_queue_depth", "Cryptographic operations waiting or running.", () => queue.depth);
  add.readGauge(
    "qsp_crypto_queue_wait_seconds",
    "Estimated seconds until a new operation would begin.",
    () => queue.expectedWaitMs / 1000,
  );
  add.readGauge(
    "qsp_crypto_queue_slow_wait_seconds",
    "The same for slow operations, such as SLH-DSA signatures, which wait in a separate lane.",
    () => queue.expectedSlowWaitMs / 1000,
  );
}
