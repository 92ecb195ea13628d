/** Tells the other workers that something happened, such as a write to the store. */

/** A count of changes, and behind it the count of each worker. */
export interface NoticesMemory {
  readonly cells: SharedArrayBuffer;
}

const changesCell = 0;
const firstWorker = 1;

/** Allocates the counts. */
export function allocateNotices(workers: number): NoticesMemory {
  return { cells: new SharedArrayBuffer((firstWorker + workers) * Int32Array.BYTES_PER_ELEMENT) };
}

/** The notices, as one worker sees them. */
export class Notices {
  readonly #cells: Int32Array;
  readonly #own: number;

  constructor({ cells }: NoticesMemory, worker: number) {
    this.#cells = new Int32Array(cells);
    this.#own = firstWorker + worker;
  }

  /** Tells the other workers. */
  send(): void {
    Atomics.add(this.#cells, this.#own, 1);
    Atomics.add(this.#cells, changesCell, 1);
    Atomics.notify(this.#cells, changesCell);
  }

  /** Calls back after notices of other workers; once for several that come together. @returns what stops it */
  listen(listener: () => void): () => void {
    let isStopped = false;
    const follow = async (): Promise<void> => {
      let seen = this.#countOthers();
      while (!isStopped) {
        const changes = Atomics.load(this.#cells, changesCell);
        const now = this.#countOthers();
        if (now !== seen) listener();
        seen = now;
        await Atomics.waitAsync(this.#cells, changesCell, changes).value;
      }
    };
    // With one worker there are no others.
    if (this.#cells.length > firstWorker + 1) void follow();
    return () => {
      isStopped = true;
    };
  }

  #countOthers(): number {
    let sum = 0;
    for (let cell = firstWorker; cell < this.#cells.length; cell += 1)
      if (cell !== this.#own) sum += Atomics.load(this.#cells, cell);
    return sum;
  }
}
