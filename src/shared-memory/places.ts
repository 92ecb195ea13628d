/** A fixed number of places that the workers take in turn: the turn to write, the threads for slow work. */

/** The memory of the places: see the cells below. */
export interface PlacesMemory {
  readonly cells: SharedArrayBuffer;
  readonly workers: number;
}

/** Ends the use of a place. */
export type Leave = () => void;

/** Counts changes, so that a worker that begins to wait sees that one happened. */
const changesCell = 0;
/** The worker that left last, plus one. */
const lastCell = 1;
/** From here on, for each worker how many of its calls wait. Behind them, for each place its worker plus one. */
const firstWaiting = 2;
/** Milliseconds after which a waiting call looks by itself: the worker that should wake it may have died. */
const recheckMs = 1000;
/** Milliseconds that the worker that left last lets others go first. */
const yieldMs = 5;

/** Allocates places. */
export function allocatePlaces(places: number, workers: number): PlacesMemory {
  const cells = new SharedArrayBuffer((firstWaiting + workers + places) * Int32Array.BYTES_PER_ELEMENT);
  return { cells, workers };
}

/** The places, as one worker sees them. */
export class Places {
  readonly #cells: Int32Array;
  readonly #firstPlace: number;
  readonly #worker: number;

  constructor({ cells, workers }: PlacesMemory, worker: number) {
    this.#cells = new Int32Array(cells);
    this.#firstPlace = firstWaiting + workers;
    this.#worker = worker;
  }

  /** Waits for a free place and takes it. The event loop goes on meanwhile. @returns what leaves it, to be called once */
  async take(): Promise<Leave> {
    const cells = this.#cells;
    const isLast = Atomics.load(cells, lastCell) === this.#worker + 1;
    // Otherwise a worker that comes back at once would keep out those that have to be woken first.
    if (isLast && this.#hasWaiting())
      await Atomics.waitAsync(cells, changesCell, Atomics.load(cells, changesCell), yieldMs).value;
    const own = firstWaiting + this.#worker;
    // Counted before it looks, so that a worker that leaves later wakes it.
    Atomics.add(cells, own, 1);
    try {
      for (;;) {
        const changes = Atomics.load(cells, changesCell);
        const place = this.#tryTake();
        if (place !== undefined) return () => this.#leave(place);
        await Atomics.waitAsync(cells, changesCell, changes, recheckMs).value;
      }
    } finally {
      Atomics.sub(cells, own, 1);
    }
  }

  /** Frees the places of a worker that died. */
  release(worker: number): void {
    for (let place = this.#firstPlace; place < this.#cells.length; place += 1)
      Atomics.compareExchange(this.#cells, place, worker + 1, 0);
    Atomics.store(this.#cells, firstWaiting + worker, 0);
    this.#wake();
  }

  #tryTake(): number | undefined {
    for (let place = this.#firstPlace; place < this.#cells.length; place += 1)
      if (Atomics.compareExchange(this.#cells, place, 0, this.#worker + 1) === 0) return place;
    return undefined;
  }

  #leave(place: number): void {
    Atomics.store(this.#cells, lastCell, this.#worker + 1);
    Atomics.store(this.#cells, place, 0);
    if (this.#hasWaiting()) this.#wake();
  }

  #hasWaiting(): boolean {
    for (let cell = firstWaiting; cell < this.#firstPlace; cell += 1)
      if (Atomics.load(this.#cells, cell) > 0) return true;
    return false;
  }

  #wake(): void {
    Atomics.add(this.#cells, changesCell, 1);
    Atomics.notify(this.#cells, changesCell);
  }
}

/** Runs work in a place, or at once if there are none to take. */
export function withPlace<T>(places: Places | undefined, work: () => Promise<T>): Promise<T> {
  return places === undefined ? work() : runIn(places, work);
}

async function runIn<T>(places: Places, work: () => Promise<T>): Promise<T> {
  const leave = await places.take();
  try {
    return await work();
  } finally {
    leave();
  }
}
