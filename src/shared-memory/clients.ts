/** The resources that clients hold on all workers: calls, streams, bytes of requests, unread responses. */
import { firstPlace, hashName, setSize } from "./names.ts";
import { type Lock, SpinLock, unshared } from "./spin-lock.ts";

/** The counted resources of a client, and their columns; column 0 counts the claims. */
const columnOf = { calls: 1, streams: 2, bytes: 3, unread: 4, connections: 5 };
/** One kind of counted resource. */
export type Holding = keyof typeof columnOf;

/** The memory of a table. */
export interface ClientsMemory {
  readonly lock: SharedArrayBuffer;
  readonly places: SharedArrayBuffer;
  readonly workers: number;
  readonly seed: number;
}

/** Numbers of one worker in a place: claims, and one for each holding. */
const columns = 1 + Object.keys(columnOf).length;
const numberBytes = Float64Array.BYTES_PER_ELEMENT;

const fieldsOf = (workers: number): number => 1 + workers * columns;

/** Allocates a table. @param places the most clients that hold something at a time; others share one count */
export function allocateClients(places: number, workers: number, seed: number): ClientsMemory {
  return {
    lock: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
    // The last place serves all clients whose sets are full.
    places: new SharedArrayBuffer((places + 1) * fieldsOf(workers) * numberBytes),
    workers,
    seed,
  };
}

/** The resources that one call, or one count, holds. */
export class Claim {
  readonly #table: Table;
  readonly #place: number;
  /** By column; the first is the claim itself. */
  readonly #held = [1, 0, 0, 0, 0, 0];
  #isClosed = false;

  constructor(table: Table, place: number) {
    this.#table = table;
    this.#place = place;
  }

  /** Adds one, unless the client already holds as many as the limit. @returns whether it was added */
  enter(holding: Holding, limit: number): boolean {
    const { lock } = this.#table;
    return lock.hold(() => {
      if (this.sum(holding) >= limit) return false;
      if (!this.#isClosed) this.#add(holding, 1);
      return true;
    });
  }

  add(holding: Holding, amount: number): void {
    if (!this.#isClosed && amount !== 0) this.#table.lock.hold(() => this.#add(holding, amount));
  }

  /** Sums the resources of the client on all workers. */
  sum(holding: Holding): number {
    return this.#table.sum(this.#place, columnOf[holding]);
  }

  /** Gives back all that was added through this claim. Later additions do not count. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const table = this.#table;
    table.lock.hold(() => {
      for (let column = 0; column < columns; column += 1) {
        const amount = this.#held[column] ?? 0;
        if (amount !== 0) table.add(this.#place, column, -amount);
      }
    });
  }

  #add(holding: Holding, amount: number): void {
    const column = columnOf[holding];
    this.#held[column] = (this.#held[column] ?? 0) + amount;
    this.#table.add(this.#place, column, amount);
  }
}

/** The numbers of all places, as one worker sees them. */
class Table {
  readonly lock: Lock;
  readonly numbers: Float64Array;
  /** Numbers of a place. */
  readonly fields: number;
  readonly #workers: number;
  readonly #worker: number;

  constructor({ lock, places, workers }: ClientsMemory, worker: number) {
    this.lock = workers > 1 ? new SpinLock(new Int32Array(lock), 0, worker) : unshared;
    this.numbers = new Float64Array(places);
    this.fields = fieldsOf(workers);
    this.#workers = workers;
    this.#worker = worker;
  }

  /** Adds to a number of this worker. */
  add(place: number, column: number, amount: number): void {
    const index = place + 1 + this.#worker * columns + column;
    this.numbers[index] = (this.numbers[index] ?? 0) + amount;
  }

  /** Adds the numbers of all workers. */
  sum(place: number, column: number): number {
    let sum = 0;
    for (let worker = 0; worker < this.#workers; worker += 1)
      sum += this.numbers[place + 1 + worker * columns + column] ?? 0;
    return sum;
  }
}

/** The table, as one worker sees it. Every worker has separate numbers, so that those of a dead one can be removed. */
export class Clients {
  readonly #table: Table;
  readonly #seed: number;

  constructor(memory: ClientsMemory, worker: number) {
    this.#table = new Table(memory, worker);
    this.#seed = memory.seed;
  }

  /** Opens a claim of a client. It must be closed. */
  claim(name: string): Claim {
    const hash = hashName(name, this.#seed);
    const table = this.#table;
    const place = table.lock.hold(() => {
      const found = this.#find(hash);
      table.numbers[found] = hash;
      table.add(found, 0, 1);
      return found;
    });
    return new Claim(table, place);
  }

  /** Removes everything that a worker held, after it died. */
  release(worker: number): void {
    const { lock, numbers, fields } = this.#table;
    lock.release(worker);
    lock.hold(() => {
      const first = 1 + worker * columns;
      for (let place = 0; place < numbers.length; place += fields)
        numbers.fill(0, place + first, place + first + columns);
    });
  }

  /** The place of a name, or else a place that no client uses. */
  #find(hash: number): number {
    const { numbers, fields } = this.#table;
    const places = numbers.length / fields - 1;
    const first = firstPlace(hash, places) * fields;
    let free = places * fields;
    for (let i = setSize - 1; i >= 0; i -= 1) {
      const place = first + i * fields;
      if (this.#table.sum(place, 0) === 0) free = place;
      else if (numbers[place] === hash) return place;
    }
    return free;
  }
}
