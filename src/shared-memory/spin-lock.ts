/** A lock for a few instructions on memory that several threads share. */

/** Attempts before a thread sleeps. */
const attempts = 200;
/** Milliseconds of such a sleep. The owner is in the middle of a few instructions, so it is a pause of the machine. */
const sleepMs = 1;

/** Runs functions one at a time. */
export interface Lock {
  /** Runs a function while no other thread holds the lock. It must be short, and must not wait. */
  hold<T>(run: () => T): T;
  /** Releases the lock of a worker that died. */
  release(worker: number): void;
}

/** The lock of memory that one thread has to itself. */
export const unshared: Lock = { hold: (run) => run(), release: () => {} };

/** The lock in one cell: 0 while it is free, otherwise one more than the number of the worker that has it. */
export class SpinLock implements Lock {
  readonly #cells: Int32Array;
  readonly #index: number;
  readonly #owner: number;

  /** @param worker the worker that this object locks for, from 0 */
  constructor(cells: Int32Array, index: number, worker: number) {
    this.#cells = cells;
    this.#index = index;
    this.#owner = worker + 1;
  }

  hold<T>(run: () => T): T {
    this.#lock();
    try {
      return run();
    } finally {
      Atomics.store(this.#cells, this.#index, 0);
    }
  }

  release(worker: number): void {
    Atomics.compareExchange(this.#cells, this.#index, worker + 1, 0);
  }

  #lock(): void {
    for (let attempt = 1; ; attempt += 1) {
      const owner = Atomics.compareExchange(this.#cells, this.#index, 0, this.#owner);
      if (owner === 0) return;
      if (attempt % attempts === 0) Atomics.wait(this.#cells, this.#index, owner, sleepMs);
    }
  }
}
