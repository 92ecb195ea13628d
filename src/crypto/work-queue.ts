/**
 * The queue before the threads that compute. It knows about how long each piece of work takes. It serves callers in
 * turn, charges each the milliseconds of its work, and refuses a caller whose own work would have to wait too long: a
 * server that is asked for five times what it can do then does as much as it can, in time, and one caller's load is
 * no other caller's.
 *
 * Quick and slow work have a lane each: a signature of SLH-DSA takes as long as thousands of ML-DSA. Slow work leaves
 * one thread free wherever there are several. The threads are handed only a few milliseconds of quick work at a time,
 * because what they have been handed is out of turn.
 */
import { Lane } from "./lane.ts";

export { CryptoBusyError, systemCaller } from "./lane.ts";

/** What a queue is made of. */
export interface WorkQueueOptions {
  /** Threads that compute. */
  readonly threads: number;
  /** Milliseconds that the work of a caller may have to wait. */
  readonly maxWaitMs: number;
  /** The same for work of many pieces, such as a batch; 10 times as long if left out. */
  readonly maxBacklogMs?: number;
  /** Counts threads that do other work now, such as password checks; quick work leaves them their cores. */
  readonly busyElsewhere?: () => number;
  /** Milliseconds of a clock that is never set back. */
  readonly now?: () => number;
}

/** A piece of work. */
export interface Work<T> {
  /** Work of one kind takes about the same time, such as "sign ML-DSA-65". */
  readonly kind: string;
  /** Who is charged. The work of `systemCaller` is never refused and goes first. */
  readonly caller: string;
  /** Milliseconds that the first of its kind is expected to take. */
  readonly guessMs: number;
  /** Milliseconds that this piece takes longer than others of its kind, because its input is longer. */
  readonly extraMs?: number;
  /** A piece of a larger whole, such as a batch: it may wait `maxBacklogMs`. */
  readonly isUnbounded: boolean;
  /** Runs before `run` returns if `start` cannot: keeps what the caller may change meanwhile. */
  readonly beforeWait?: () => void;
  /** Hands the work to the threads. */
  start(): Promise<T>;
}

/** Milliseconds that one kind of work takes. */
interface Cost {
  /** As a rule. */
  readonly usualMs: number;
  /** At best. A busy event loop or a pause of the machine only adds, so this one tells quick work from slow. */
  readonly leastMs: number;
}

/** A piece of slow work that the threads have. */
interface Running {
  /** On the clock of the queue, as far as one can tell. */
  readonly endsMs: number;
}

/** Milliseconds; work that takes longer is slow. */
const slowMs = 20;
/** How much the newest measurement counts, and how many times the estimate it may be: a pause of the machine is none. */
const weight = 0.1;
const maxRatio = 4;
/**
 * Milliseconds of quick work that each thread is handed ahead. Enough to keep the threads busy while the event loop is
 * late, and little for a caller that has to wait for it.
 */
const aheadMs = 10;

/** The queue of one process. */
export class WorkQueue {
  /** Work that ends soon. */
  readonly quick: Lane;
  /** Work that keeps a thread for long. */
  readonly slow: Lane;
  readonly #threads: number;
  readonly #maxWaitMs: number;
  readonly #maxBacklogMs: number;
  readonly #now: () => number;
  /** Pieces of slow work that the threads may have at a time. */
  readonly #places: number;
  /** By kind. */
  readonly #costs = new Map<string, Cost>();
  readonly #running = new Set<Running>();

  constructor({ threads, maxWaitMs, maxBacklogMs, busyElsewhere = () => 0, now }: WorkQueueOptions) {
    this.#threads = threads;
    this.#maxWaitMs = maxWaitMs;
    this.#maxBacklogMs = maxBacklogMs ?? 10 * maxWaitMs;
    this.#now = now ?? (() => performance.now());
    this.#places = Math.max(1, threads - 1);
    this.quick = new Lane({
      hasRoom: ({ leastMs }) => leastMs < Math.max(1, threads - busyElsewhere()) * aheadMs,
      waitFor: (ms) => this.#waitForQuick(ms),
    });
    this.slow = new Lane({
      hasRoom: ({ count }) => count < this.#places,
      waitFor: (ms) => ms / this.#places,
    });
  }

  /** Milliseconds until all quick work that is here has begun, as far as one can tell. */
  get expectedWaitMs(): number {
    return this.#waitForQuick(this.quick.totalMs);
  }

  /** Milliseconds until all slow work that is here has begun, as far as one can tell. */
  get expectedSlowWaitMs(): number {
    if (this.#running.size < this.#places) return 0;
    return (this.#runningMs + this.slow.waitingMs) / this.#places;
  }

  /** Pieces of work that have not ended. */
  get depth(): number {
    return this.quick.depth + this.slow.depth;
  }

  /** Does a piece of work in its turn. @throws CryptoBusyError, without having done anything */
  run<T>(work: Work<T>): Promise<T> {
    const { usualMs, leastMs } = this.#costOf(work);
    const isSlow = leastMs > slowMs;
    const { caller, beforeWait, extraMs = 0 } = work;
    const costMs = usualMs + extraMs;
    return (isSlow ? this.slow : this.quick).run({
      caller,
      costMs,
      leastMs: leastMs + extraMs,
      limitMs: work.isUnbounded ? this.#maxBacklogMs : this.#maxWaitMs,
      ...(beforeWait && { beforeWait }),
      start: () => (isSlow ? this.#computeSlow(work, costMs) : this.#compute(work)),
    });
  }

  #waitForQuick(ms: number): number {
    const free = this.#threads - this.#running.size;
    return free > 0 ? ms / free : ms + this.#runningMs;
  }

  /** Milliseconds of slow work that the threads still have to do. */
  get #runningMs(): number {
    const nowMs = this.#now();
    return [...this.#running].reduce((sum, { endsMs }) => sum + Math.max(0, endsMs - nowMs), 0);
  }

  async #computeSlow<T>(work: Work<T>, costMs: number): Promise<T> {
    const running: Running = { endsMs: this.#now() + costMs };
    this.#running.add(running);
    try {
      return await this.#compute(work);
    } finally {
      this.#running.delete(running);
    }
  }

  async #compute<T>(work: Work<T>): Promise<T> {
    // Only work that begins at once shows how long it takes by itself, and only if it is done.
    const beginsAtOnce = this.quick.handed + this.slow.handed <= this.#threads;
    const startedMs = this.#now();
    const result = await work.start();
    if (beginsAtOnce) this.#learn(work, Math.max(0, this.#now() - startedMs - (work.extraMs ?? 0)));
    return result;
  }

  #costOf({ kind, guessMs }: Work<unknown>): Cost {
    return this.#costs.get(kind) ?? { usualMs: guessMs, leastMs: guessMs };
  }

  #learn(work: Work<unknown>, tookMs: number): void {
    const { usualMs } = this.#costOf(work);
    this.#costs.set(work.kind, {
      usualMs: usualMs + (Math.min(tookMs, usualMs * maxRatio) - usualMs) * weight,
      leastMs: Math.min(tookMs, this.#costs.get(work.kind)?.leastMs ?? tookMs),
    });
  }
}
