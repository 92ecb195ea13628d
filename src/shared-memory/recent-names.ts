/** A number and a time for each name, in memory that several threads share: the fill of a bucket, attempts in a minute. */
import { firstPlace, hashName, setSize } from "./names.ts";
import { SpinLock } from "./spin-lock.ts";

/** The facts that are remembered of a name. */
export interface RecentName {
  value: number;
  /** Milliseconds on a clock of the caller's; 0 for a name that is not known. */
  atMs: number;
}

/** The memory of a table. */
export interface RecentNamesMemory {
  readonly lock: SharedArrayBuffer;
  readonly places: SharedArrayBuffer;
  readonly seed: number;
}

/** Numbers of a place: hash, value, time. */
const fields = 3;
const numberBytes = Float64Array.BYTES_PER_ELEMENT;

/** Allocates a table. @param places the most names; the system commits memory only for those that are used */
export function allocateRecentNames(places: number, seed: number): RecentNamesMemory {
  return {
    lock: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
    places: new SharedArrayBuffer(places * fields * numberBytes),
    seed,
  };
}

/** One table. Of the names that share a set, the one with the earliest time makes room for a new one. */
export class RecentNames {
  readonly #lock: SpinLock;
  readonly #numbers: Float64Array;
  readonly #seed: number;
  /** Reused: an update neither waits nor calls another one. */
  readonly #entry: RecentName = { value: 0, atMs: 0 };

  constructor({ lock, places, seed }: RecentNamesMemory, worker: number) {
    this.#lock = new SpinLock(new Int32Array(lock), 0, worker);
    this.#numbers = new Float64Array(places);
    this.#seed = seed;
  }

  /**
   * Reads and changes the facts of a name, while no other thread does.
   *
   * @param update receives the entry and changes it. An unknown name is remembered if `atMs` is not 0 afterwards; a
   *   known one is forgotten if it is 0.
   */
  update<T>(name: string, update: (entry: RecentName) => T): T {
    const hash = hashName(name, this.#seed);
    return this.#lock.hold(() => {
      const place = this.#find(hash);
      const numbers = this.#numbers;
      const entry = this.#entry;
      const isKnown = numbers[place] === hash;
      entry.value = isKnown ? (numbers[place + 1] ?? 0) : 0;
      entry.atMs = isKnown ? (numbers[place + 2] ?? 0) : 0;
      const result = update(entry);
      if (isKnown || entry.atMs !== 0) {
        numbers[place] = entry.atMs === 0 ? 0 : hash;
        numbers[place + 1] = entry.value;
        numbers[place + 2] = entry.atMs;
      }
      return result;
    });
  }

  /** Releases the lock of a worker that died. */
  release(worker: number): void {
    this.#lock.release(worker);
  }

  /** The place of a name, or else the place in its set that is free or has the earliest time. */
  #find(hash: number): number {
    const numbers = this.#numbers;
    const first = firstPlace(hash, numbers.length / fields) * fields;
    let oldest = first;
    for (let place = first; place < first + setSize * fields; place += fields) {
      if (numbers[place] === hash) return place;
      if ((numbers[place + 2] ?? 0) < (numbers[oldest + 2] ?? 0)) oldest = place;
    }
    return oldest;
  }
}
