/** A number for each worker, which that worker changes and all others read. */

/** The numbers as they go from thread to thread. */
export interface WorkerNumbersMemory {
  readonly cells: SharedArrayBuffer;
}

/** Allocates the numbers, all 0. */
export function allocateWorkerNumbers(workers: number): WorkerNumbersMemory {
  return { cells: new SharedArrayBuffer(workers * Int32Array.BYTES_PER_ELEMENT) };
}

/** The numbers, as one worker uses them. */
export class WorkerNumbers {
  readonly #cells: Int32Array;
  readonly #worker: number;

  constructor({ cells }: WorkerNumbersMemory, worker: number) {
    this.#cells = new Int32Array(cells);
    this.#worker = worker;
  }

  /** Sets the number of this worker. */
  set(value: number): void {
    Atomics.store(this.#cells, this.#worker, value);
  }

  /** Adds 1 to the number of this worker. */
  increment(): void {
    Atomics.add(this.#cells, this.#worker, 1);
  }

  /** Reads the number of any worker. */
  read(worker: number): number {
    return Atomics.load(this.#cells, worker);
  }

  /** Counts the other workers whose number is above 0. */
  countOthers(): number {
    let count = 0;
    for (let worker = 0; worker < this.#cells.length; worker += 1)
      if (worker !== this.#worker && this.read(worker) > 0) count += 1;
    return count;
  }

  /** Sets the number of a worker that died to 0. */
  release(worker: number): void {
    Atomics.store(this.#cells, worker, 0);
  }
}
