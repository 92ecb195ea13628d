/**
 * The queue in front of the computing threads. It serves callers in turn, charges each what its work costs, and refuses a
 * caller whose own work would have to wait too long. So under five times its capacity a server still does as much as it
 * can, in time, and one caller's load does not slow down the others.
 *
 * Quick and slow work have separate lanes: an SLH-DSA signature takes as long as thousands of ML-DSA signatures. With
 * several threads, slow work leaves one free. The threads receive only a few milliseconds of quick work at a time,
 * because work that they already have can no longer be reordered.
 */
import type { Cost } from "./costs.ts";
import { Lane, type LaneWork } from "./lane.ts";

export { CryptoBusyError, systemCaller } from "./lane.ts";

/** The options of a queue. */
export interface WorkQueueOptions {
  /** The number of computing threads. */
  readonly threads: number;
  /** The longest time that a caller's work may wait, in milliseconds. */
  readonly maxWaitMs: number;
  /** The same limit for work of many pieces, such as a batch; 10 times as long if left out. */
  readonly maxBacklogMs?: number;
  /** Counts threads that do other work now, such as password checks. Quick work leaves cores for them. */
  readonly busyElsewhere?: () => number;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
}

/** A piece of work. `beforeWait` copies input that the caller may change in the meantime. */
export interface Work<T> extends Cost, Pick<LaneWork<T>, "caller" | "signal" | "beforeWait" | "start"> {
  /** Set for a piece of larger work, such as a batch: it may wait `maxBacklogMs`. */
  readonly isUnbounded: boolean;
}

/**
 * Milliseconds of quick work that each thread receives in advance. It keeps the threads busy while the event loop is
 * late, and delays a waiting caller only a little.
 */
const aheadMs = 10;

/** The queue of one server. */
export class WorkQueue {
  /** The lane for quick work. */
  readonly quick: Lane;
  /** The lane for slow work. */
  readonly slow: Lane;
  readonly #threads: number;
  readonly #maxWaitMs: number;
  readonly #maxBacklogMs: number;
  readonly #now: () => number;
  /** The most pieces of slow work that the threads may run at once. */
  readonly #places: number;
  /** The slow work that the threads have: the estimated end of each piece, on the clock of the queue. */
  readonly #running = new Set<{ readonly endsMs: number }>();

  constructor({ threads, maxWaitMs, maxBacklogMs, busyElsewhere = () => 0, now }: WorkQueueOptions) {
    this.#threads = threads;
    this.#maxWaitMs = maxWaitMs;
    this.#maxBacklogMs = maxBacklogMs ?? 10 * maxWaitMs;
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

  /** Estimated milliseconds until all present quick work has started. */
  get expectedWaitMs(): number {
    return this.#waitForQuick(this.quick.totalMs);
  }

  /** Estimated milliseconds until all present slow work has started. */
  get expectedSlowWaitMs(): number {
    if (this.#running.size < this.#places) return 0;
    return (this.#runningMs + this.slow.waitingMs) / this.#places;
  }

  /** Unfinished pieces of work. */
  get depth(): number {
    return this.quick.depth + this.slow.depth;
  }

  /** Runs a piece of work in its turn. @throws CryptoBusyError, before the work starts */
  run<T>(work: Work<T>): Promise<T> {
    const limitMs = work.isUnbounded ? this.#maxBacklogMs : this.#maxWaitMs;
    if (!work.isSlow) return this.quick.run({ ...work, limitMs });
    return this.slow.run({ ...work, limitMs, start: () => this.#computeSlow(work) });
  }

  #waitForQuick(ms: number): number {
    const free = this.#threads - this.#running.size;
    return free > 0 ? ms / free : ms + this.#runningMs;
  }

  /** Remaining milliseconds of slow work on the threads. */
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
