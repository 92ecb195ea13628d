/** How many event loops have work that waits for the threads that all of them use. */

/** The work that waits, for each worker. */
export interface BusyWorkersMemory {
  readonly cells: SharedArrayBuffer;
}

/** Allocates the numbers. */
export function allocateBusyWorkers(workers: number): BusyWorkersMemory {
  return { cells: new SharedArrayBuffer(workers * Int32Array.BYTES_PER_ELEMENT) };
}

/** The numbers, as one worker sees them. */
export class BusyWorkers {
  readonly #cells: Int32Array;
  readonly #worker: number;

  constructor({ cells }: BusyWorkersMemory, worker: number) {
    this.#cells = new Int32Array(cells);
    this.#worker = worker;
  }

  /** Tells the others how many pieces of work wait here. */
  report(waiting: number): void {
    Atomics.store(this.#cells, this.#worker, waiting);
  }

  /** Counts the other workers with work that waits. */
  countOthers(): number {
    let busy = 0;
    for (let worker = 0; worker < this.#cells.length; worker += 1)
      if (worker !== this.#worker && Atomics.load(this.#cells, worker) > 0) busy += 1;
    return busy;
  }

  /** Forgets a worker that died. */
  release(worker: number): void {
    Atomics.store(this.#cells, worker, 0);
  }
}
