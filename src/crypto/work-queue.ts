/**
 * The queue in front of the computing threads. It serves callers in turn, charges each for the cost of its
 * work, and rejects work of a caller whose own backlog is too long. Under five times its capacity, a server
 * therefore still completes as much work as it can in time, and one caller's load does not slow down the
 * others.
 *
 * Quick and slow work have separate lanes: an SLH-DSA signature takes as long as thousands of ML-DSA
 * signatures. With several threads, slow work leaves one free. The threads receive only a few milliseconds of
 * quick work in advance, because work that they have received can no longer be reordered.
 */
import type { Cost } from "./costs.ts";
import { Lane, type LaneWork } from "./lane.ts";

export { CryptoBusyError, systemCaller } from "./lane.ts";

export interface WorkQueueOptions {
  /** Number of computing threads. */
  readonly threads: number;
  /** Maximum milliseconds that a caller's work may wait. */
  readonly maxWaitMs: number;
  /** The same limit for bulk work, such as a batch. */
  readonly maxBacklogMs: number;
  /**
   * Returns the number of threads doing other work, such as password checks. Quick work leaves cores for
   * them.
   */
  readonly busyElsewhere?: () => number;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
}

/** A piece of work. `beforeWait` copies input that the caller may change in the meantime. */
export interface Work<T> extends Cost, Pick<LaneWork<T>, "caller" | "signal" | "beforeWait" | "start"> {
  /** Whether the work is part of bulk work, such as a batch, and may wait `maxBacklogMs`. */
  readonly isUnbounded: boolean;
}

/**
 * Milliseconds of quick work that each thread receives in advance. Keeps the threads busy while the event
 * loop is delayed, and delays a waiting caller only a little.
 */
const aheadMs = 10;

/** One server's work queue. */
export class WorkQueue {
  readonly quick: Lane;
  readonly slow: Lane;
  readonly #threads: number;
  readonly #maxWaitMs: number;
  readonly #maxBacklogMs: number;
  readonly #now: () => number;
  /** Maximum pieces of slow work that the threads may run at once. */
  readonly #places: number;
  /** Slow work on the threads: the estimated end of each piece, on the queue's clock. */
  readonly #running = new Set<{ readonly endsMs: number }>();

  constructor({ threads, maxWaitMs, maxBacklogMs, busyElsewhere = () => 0, now }: WorkQueueOptions) {
    this.#threads = threads;
    this.#maxWaitMs = maxWaitMs;
    this.#maxBacklogMs = maxBacklogMs;
    this.#now = now ?? (() => performance.now());
    // One thread stays free for quick work.
    this.#places = Math.max(1, threads - 1);
    this.quick = new Lane({
      hasRoom: ({ costMs }) => costMs < Math.max(1, threads - busyElsewhere()) * aheadMs,
      waitFor: (ms) => this.#waitForQuick(ms),
    });
    this.slow = new Lane({
      hasRoom: ({ count }) => count < this.#places,
      waitFor: (ms) => ms / this.#places,
    });
  }

  /** Estimated milliseconds until all current quick work has started. */
  get expectedWaitMs(): number {
    return this.#waitForQuick(this.quick.totalMs);
  }

  /** Estimated milliseconds until all current slow work has started. */
  get expectedSlowWaitMs(): number {
    if (this.#running.size < this.#places) return 0;
    return (this.#runningMs + this.slow.waitingMs) / this.#places;
  }

  /** Number of unfinished pieces of work. */
  get depth(): number {
    return this.quick.depth + this.slow.depth;
  }

  /**
   * Runs a piece of work in its turn.
   *
   * @throws CryptoBusyError, before the work starts
   */
  run<T>(work: Work<T>): Promise<T> {
    const limitMs = work.isUnbounded ? this.#maxBacklogMs : this.#maxWaitMs;
    if (!work.isSlow) return this.quick.run({ ...work, limitMs });
    return this.slow.run({ ...work, limitMs, start: () => this.#computeSlow(work) });
  }

  #waitForQuick(ms: number): number {
    const free = this.#threads - this.#running.size;
    return free > 0 ? ms / free : ms + this.#runningMs;
  }

  /** Milliseconds of slow work that remain on the threads. */
  get #runningMs(): number {
    const nowMs = this.#now();
    return [...this.#running].reduce((sum, { endsMs }) => sum + Math.max(0, endsMs - nowMs), 0);
  }

  async #computeSlow<T>(work: Work<T>): Promise<T> {
    const running = { endsMs: this.#now() + work.costMs };
    this.#running.add(running);
    try {
      return await work.start();
    } finally {
      this.#running.delete(running);
    }
  }
}
