/**
 * Watches the queue before the threads that compute. It knows about how long what is in it takes, so that it can refuse
 * what would have to wait too long, at once and at little cost: a server that is asked for five times what it can do
 * then does as much as it can, in time, instead of everything too late.
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
}

/** A piece of work. */
export interface Work<T> {
  /** Work of one kind takes about the same time, such as "sign ML-DSA-65". */
  readonly kind: string;
  /** Milliseconds that the first of its kind is thought to take. */
  readonly guessMs: number;
  /** Waits its turn however long that is. For work that bounds itself, or that others depend on. */
  readonly isPatient: boolean;
  /** Hands the work to the threads. */
  start(): Promise<T>;
}

/** How much the newest measurement counts, and how many times the estimate it may be: a pause of the machine is none. */
const weight = 0.1;
const maxRatio = 4;

/** The queue of one process. The threads' own queue keeps the order; they never wait for the event loop. */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  /** Milliseconds by kind. */
  readonly #costs = new Map<string, number>();
  #depth = 0;
  #loadMs = 0;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** Milliseconds until new work would begin, as far as one can tell. */
  get expectedWaitMs(): number {
    return this.#loadMs / this.#options.threads;
  }

  /** Pieces of work that have not ended. */
  get depth(): number {
    return this.#depth;
  }

  /** Does a piece of work in its turn. @throws CryptoBusy, without having done anything */
  async run<T>({ kind, guessMs, isPatient, start }: Work<T>): Promise<T> {
    const { threads, maxWaitMs } = this.#options;
    const waitMs = this.expectedWaitMs;
    if (!isPatient && waitMs > maxWaitMs) throw new CryptoBusy(waitMs);
    const costMs = this.#costs.get(kind) ?? guessMs;
    // Only work that begins at once shows how long it takes by itself.
    const startedMs = this.#depth < threads ? performance.now() : undefined;
    this.#depth += 1;
    this.#loadMs += costMs;
    try {
      return await start();
    } finally {
      this.#depth -= 1;
      this.#loadMs = this.#depth === 0 ? 0 : this.#loadMs - costMs;
      if (startedMs !== undefined) this.#learn(kind, guessMs, performance.now() - startedMs);
    }
  }

  #learn(kind: string, guessMs: number, tookMs: number): void {
    const costMs = this.#costs.get(kind) ?? guessMs;
    this.#costs.set(kind, costMs + (Math.min(tookMs, costMs * maxRatio) - costMs) * weight);
  }
}
