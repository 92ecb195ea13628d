/** The metrics of the work that waits for a thread. */
import { Counter, Gauge, type Registry } from "prom-client";

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

/** Registers the metrics of the lanes and of the queue, read when they are exposed. */
export function exposeQueue(
  registry: Registry,
  { queue, passwords }: { readonly queue: WatchedQueue; readonly passwords: WatchedLane },
): void {
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
    help: "Callers that have work in a lane. The server serves them in turn.",
    labelNames,
    registers: [registry],
    collect() {
      for (const [lane, { callers }] of lanes) this.set({ lane }, callers);
    },
  });
  new Counter({
    name: "qsp_lane_refused_total",
    help: "Pieces of work that the server refused because the caller's work would wait too long, by lane.",
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const [lane, { refused }] of lanes) this.inc({ lane }, refused);
    },
  });
  new Gauge({
    name: "qsp_crypto_queue_depth",
    help: "Cryptographic operations that are waiting or running.",
    registers: [registry],
    collect() {
      this.set(queue.depth);
    },
  });
  new Gauge({
    name: "qsp_crypto_queue_wait_seconds",
    help: "Estimated seconds that a new operation would wait before it begins.",
    registers: [registry],
    collect() {
      this.set(queue.expectedWaitMs / 1000);
    },
  });
  new Gauge({
    name: "qsp_crypto_queue_slow_wait_seconds",
    help: "The same for slow operations, such as signatures of SLH-DSA, which wait in a separate lane.",
    registers: [registry],
    collect() {
      this.set(queue.expectedSlowWaitMs / 1000);
    },
  });
}
