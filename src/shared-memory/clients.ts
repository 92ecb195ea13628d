/** What clients hold on all workers together: calls, streams, bytes of requests, responses that they do not read. */
import { firstPlace, hashName, setSize } from "./names.ts";
import { SpinLock } from "./spin-lock.ts";

/** What is counted for a client. */
export const holdings = ["calls", "streams", "bytes", "unread", "connections"] as const;
/** One kind of what is counted. */
export type Holding = (typeof holdings)[number];

/** The memory of a table. */
export interface ClientsMemory {
  readonly lock: SharedArrayBuffer;
  readonly places: SharedArrayBuffer;
  readonly workers: number;
  readonly seed: number;
}

/** Numbers of one worker in a place: claims, and one for each holding. */
const columns = 1 + holdings.length;
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

/** What one call, or one count, holds. */
export interface Claim {
  /** Adds one, unless the client already holds as many as the limit. @returns whether it was added */
  enter(holding: Holding, limit: number): boolean;
  add(holding: Holding, amount: number): void;
  /** What the client holds on all workers. */
  sum(holding: Holding): number;
  /** Gives back all that was added through this claim. Later additions do not count. */
  close(): void;
}

/** The table, as one worker sees it. Every worker has numbers of its own, so that those of a dead one can be removed. */
export class Clients {
  readonly #lock: SpinLock;
  readonly #numbers: Float64Array;
  readonly #fields: number;
  readonly #workers: number;
  readonly #worker: number;
  readonly #seed: number;

  constructor({ lock, places, workers, seed }: ClientsMemory, worker: number) {
    this.#lock = new SpinLock(new Int32Array(lock), 0, worker);
    this.#numbers = new Float64Array(places);
    this.#fields = fieldsOf(workers);
    this.#workers = workers;
    this.#worker = worker;
    this.#seed = seed;
  }

  /** Opens a claim of a client. It must be closed. */
  claim(name: string): Claim {
    const hash = hashName(name, this.#seed);
    const place = this.#lock.hold(() => {
      const found = this.#find(hash);
      this.#numbers[found] = hash;
      this.#add(found, 0, 1);
      return found;
    });
    const held = new Float64Array(holdings.length);
    let isClosed = false;
    const add = (column: number, amount: number): void => {
      held[column - 1] = (held[column - 1] ?? 0) + amount;
      this.#add(place, column, amount);
    };
    return {
      enter: (holding, limit) =>
        this.#lock.hold(() => {
          const column = columnOf(holding);
          if (this.#sum(place, column) >= limit) return false;
          if (!isClosed) add(column, 1);
          return true;
        }),
      add: (holding, amount) => {
        if (!isClosed && amount !== 0) this.#lock.hold(() => add(columnOf(holding), amount));
      },
      sum: (holding) => this.#sum(place, columnOf(holding)),
      close: () => {
        if (isClosed) return;
        isClosed = true;
        this.#lock.hold(() => {
          for (const [index, amount] of held.entries())
            if (amount !== 0) this.#add(place, index + 1, -amount);
          this.#add(place, 0, -1);
        });
      },
    };
  }

  /** Removes everything that a worker held, after it died. */
  release(worker: number): void {
    this.#lock.release(worker);
    this.#lock.hold(() => {
      const first = 1 + worker * columns;
      for (let place = 0; place < this.#numbers.length; place += this.#fields)
        this.#numbers.fill(0, place + first, place + first + columns);
    });
  }

  /** The place of a name, or else a place that no client uses. */
  #find(hash: number): number {
    const places = this.#numbers.length / this.#fields - 1;
    const first = firstPlace(hash, places) * this.#fields;
    let free = places * this.#fields;
    for (let i = setSize - 1; i >= 0; i -= 1) {
      const place = first + i * this.#fields;
      if (this.#sum(place, 0) === 0) free = place;
      else if (this.#numbers[place] === hash) return place;
    }
    return free;
  }

  /** Adds to a number of this worker. */
  #add(place: number, column: number, amount: number): void {
    const index = place + 1 + this.#worker * columns + column;
    this.#numbers[index] = (this.#numbers[index] ?? 0) + amount;
  }

  /** Adds the numbers of all workers. */
  #sum(place: number, column: number): number {
    let sum = 0;
    for (let worker = 0; worker < this.#workers; worker += 1)
      sum += this.#numbers[place + 1 + worker * columns + column] ?? 0;
    return sum;
  }
}

function columnOf(holding: Holding): number {
  return holdings.indexOf(holding) + 1;
}
