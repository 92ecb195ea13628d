/** Shows that event loops go round: each counts in a cell of its own, and the supervisor looks whether it goes on. */

/** A count for each worker. */
export interface HeartbeatMemory {
  readonly cells: SharedArrayBuffer;
}

/** Allocates the counts. */
export function allocateHeartbeat(workers: number): HeartbeatMemory {
  return { cells: new SharedArrayBuffer(workers * Int32Array.BYTES_PER_ELEMENT) };
}

/** The counts. */
export class Heartbeat {
  readonly #cells: Int32Array;
  readonly #worker: number;

  constructor({ cells }: HeartbeatMemory, worker: number) {
    this.#cells = new Int32Array(cells);
    this.#worker = worker;
  }

  beat(): void {
    Atomics.add(this.#cells, this.#worker, 1);
  }

  /** The count of a worker. */
  read(worker: number): number {
    return Atomics.load(this.#cells, worker);
  }
}
