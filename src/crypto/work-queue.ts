/**
 * Watches the queue before the threads that compute. It knows about how long what is in it takes, so that it can refuse
 * what would have to wait too long, at once and at little cost: a server that is asked for five times what it can do
 * then does as much as it can, in time, instead of everything too late.
 *
 * Quick work is handed to the threads at once. Slow work has a lane of its own, which leaves one thread free wherever
 * there are several: a signature of SLH-DSA takes as long as thousands of ML-DSA, whose callers would wait for it.
 */

/** Says that work would have to wait too long. */
export class CryptoBusy extends Error {
  /** Milliseconds after which there will be room. */
  readonly retryMs: number;

  constructor(retryMs: number) {
    super("more is asked for than can be computed in time");
    this.name = "CryptoBusy";
    this.retryMs = retryMs;
  }
}

/** What a queue is made of. */
export interface WorkQueueOptions {
  /** Threads that compute. */
  readonly threads: number;
  /** Milliseconds that work may have to wait. */
  readonly maxWaitMs: number;
  /** Milliseconds of a clock that is never set back. */
  readonly now?: () => number;
}

/** A piece of work. */
export interface Work<T> {
  /** Work of one kind takes about the same time, such as "sign ML-DSA-65". */
  readonly kind: string;
  /** Milliseconds that the first of its kind is thought to take. */
  readonly guessMs: number;
  /** Waits its turn however long that is. For work that bounds itself, or that others depend on. */
  readonly isPatient: boolean;
  /** Runs before `run` returns if `start` can not: keeps what the caller may change meanwhile. */
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

/** A piece of slow work that waits for its place. */
interface Waiting {
  readonly usualMs: number;
  begin(): void;
}

/** Milliseconds; work that takes longer is slow. */
const slowMs = 20;
/** How much the newest measurement counts, and how many times the estimate it may be: a pause of the machine is none. */
const weight = 0.1;
const maxRatio = 4;

/** The queue of one process. The threads' own queue keeps the order of what was handed to them. */
export class WorkQueue {
  readonly #threads: number;
  readonly #maxWaitMs: number;
  readonly #now: () => number;
  /** Pieces of slow work that the threads may have at a time. */
  readonly #places: number;
  /** By kind. */
  readonly #costs = new Map<string, Cost>();
  readonly #running = new Set<Running>();
  /** The first to come is the first. */
  readonly #waiting: Waiting[] = [];
  #quickDepth = 0;
  #quickMs = 0;

  constructor({ threads, maxWaitMs, now = () => performance.now() }: WorkQueueOptions) {
    this.#threads = threads;
    this.#maxWaitMs = maxWaitMs;
    this.#now = now;
    this.#places = Math.max(1, threads - 1);
  }

  /** Milliseconds until new quick work would begin, as far as one can tell. */
  get expectedWaitMs(): number {
    const free = this.#threads - this.#running.size;
    return free > 0 ? this.#quickMs / free : this.#quickMs + this.#runningMs;
  }

  /** Milliseconds until new slow work would get a place, as far as one can tell. */
  get expectedSlowWaitMs(): number {
    if (this.#running.size < this.#places) return 0;
    const waitingMs = this.#waiting.reduce((sum, { usualMs }) => sum + usualMs, 0);
    return (this.#runningMs + waitingMs) / this.#places;
  }

  /** Pieces of work that have not ended. */
  get depth(): number {
    return this.#handed + this.#waiting.length;
  }

  /** Does a piece of work in its turn. @throws CryptoBusy, without having done anything */
  async run<T>(work: Work<T>): Promise<T> {
    const { usualMs, leastMs } = this.#costOf(work);
    const isSlow = leastMs > slowMs;
    const waitMs = isSlow ? this.expectedSlowWaitMs : this.expectedWaitMs;
    if (!work.isPatient && waitMs > this.#maxWaitMs) throw new CryptoBusy(waitMs);
    if (!isSlow) return this.#runQuick(work, usualMs);
    if (this.#running.size < this.#places) return this.#runSlow(work, usualMs);
    work.beforeWait?.();
    return new Promise((resolve) => {
      this.#waiting.push({ usualMs, begin: () => resolve(this.#runSlow(work, usualMs)) });
    });
  }

  /** Pieces of work that the threads have. */
  get #handed(): number {
    return this.#quickDepth + this.#running.size;
  }

  /** Milliseconds of slow work that the threads still have to do. */
  get #runningMs(): number {
    const nowMs = this.#now();
    return [...this.#running].reduce((sum, { endsMs }) => sum + Math.max(0, endsMs - nowMs), 0);
  }

  async #runQuick<T>(work: Work<T>, usualMs: number): Promise<T> {
    this.#quickDepth += 1;
    this.#quickMs += usualMs;
    try {
      return await this.#compute(work);
    } finally {
      this.#quickDepth -= 1;
      this.#quickMs = this.#quickDepth === 0 ? 0 : this.#quickMs - usualMs;
    }
  }

  async #runSlow<T>(work: Work<T>, usualMs: number): Promise<T> {
    const running: Running = { endsMs: this.#now() + usualMs };
    this.#running.add(running);
    try {
      return await this.#compute(work);
    } finally {
      this.#running.delete(running);
      // In the same turn: who comes later finds no place free before those who wait.
      this.#waiting.shift()?.begin();
    }
  }

  async #compute<T>(work: Work<T>): Promise<T> {
    // Only work that begins at once shows how long it takes by itself, and only if it is done.
    const beginsAtOnce = this.#handed <= this.#threads;
    const startedMs = this.#now();
    const result = await work.start();
    if (beginsAtOnce) this.#learn(work, this.#now() - startedMs);
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
