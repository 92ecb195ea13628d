/** The limits of a map. */
export interface RecentMapOptions {
  /** Milliseconds that an entry stays at least. */
  readonly lifetimeMs: number;
  /** An entry may go earlier once so many others were set after it. The map has at most twice as many. */
  readonly maxEntries: number;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

/**
 * A map that forgets what was not set for some time, such as the rates of clients that have gone. It has two
 * generations, so that it never has to look for the oldest entry.
 */
export class RecentMap<Value> {
  readonly #options: RecentMapOptions;
  #recent = new Map<string, Value>();
  #earlier = new Map<string, Value>();
  #recentEndsMs = 0;

  constructor(options: RecentMapOptions) {
    this.#options = options;
  }

  /** The number of entries. */
  get size(): number {
    return this.#recent.size + this.#earlier.size;
  }

  get(name: string): Value | undefined {
    return this.#recent.get(name) ?? this.#earlier.get(name);
  }

  /** Sets an entry. Its lifetime begins anew. */
  set(name: string, value: Value): void {
    const { lifetimeMs, maxEntries, nowMs } = this.#options;
    const atMs = nowMs();
    if (atMs >= this.#recentEndsMs || this.#recent.size >= maxEntries) {
      this.#earlier = this.#recent;
      this.#recent = new Map();
      this.#recentEndsMs = atMs + lifetimeMs;
    }
    this.#recent.set(name, value);
  }
}
