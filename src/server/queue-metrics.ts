/** Metrics of the work queue in front of the crypto threads. */
import { Counter, Gauge, type Registry } from "prom-client";

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

/** Registers the metrics of the queue and its lanes; values are read on scrape. */
export function exposeQueue(
  registry: Registry,
  { queue, passwords }: { readonly queue: WatchedQueue; readonly passwords: WatchedLane },
): void {
  const lanes = Object.entries({ quick: queue.quick, slow: queue.slow, passwords });
  const labelNames = ["lane"];
  new Gauge({
    name: "qsp_lane_waiting",
    help: "Pieces of work waiting for a thread, by lane: quick, slow, passwords.",
    labelNames,
    registers: [registry],
    collect() {
      for (const [lane, { waiting }] of lanes) this.set({ lane }, waiting);
    },
  });
  new Gauge({
    name: "qsp_lane_callers",
    help: "Callers with work in a lane. The server serves them in turn.",
    labelNames,
    registers: [registry],
    collect() {
      for (const [lane, { callers }] of lanes) this.set({ lane }, callers);
    },
  });
  new Counter({
    name: "qsp_lane_refused_total",
    help: "Pieces of work refused because the caller's work would have waited too long, by lane.",
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const [lane, { refused }] of lanes) this.inc({ lane }, refused);
    },
  });
  new Gauge({
    name: "qsp_crypto_queue_depth",
    help: "Cryptographic operations waiting or running.",
    registers: [registry],
    collect() {
      this.set(queue.depth);
    },
  });
  new Gauge({
    name: "qsp_crypto_queue_wait_seconds",
    help: "Estimated seconds until a new operation would begin.",
    registers: [registry],
    collect() {
      this.set(queue.expectedWaitMs / 1000);
    },
  });
  new Gauge({
    name: "qsp_crypto_queue_slow_wait_seconds",
    help: "The same for slow operations, such as SLH-DSA signatures, which wait in a separate lane.",
    registers: [registry],
    collect() {
      this.set(queue.expectedSlowWaitMs / 1000);
    },
  });
}
