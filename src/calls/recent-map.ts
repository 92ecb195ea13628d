export interface RecentMapOptions {
  /** Milliseconds that an entry is kept at least. */
  readonly lifetimeMs: number;
  /**
   * An entry may be evicted earlier once this many others have been set after it. The map has at most twice
   * as many.
   */
  readonly maxEntries: number;
  /** Milliseconds on a monotonic clock. */
  readonly nowMs: () => number;
}

/**
 * A map that evicts entries not set for some time, such as the rates of inactive clients. It has two
 * generations, so it never has to search for the oldest entry.
 */
export class RecentMap<Value> {
  readonly #options: RecentMapOptions;
  #recent = new Map<string, Value>();
  #earlier = new Map<string, Value>();
  #recentEndsMs = 0;

  constructor(options: RecentMapOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#recent.size + this.#earlier.size;
  }

  get(name: string): Value | undefined {
    return this.#recent.get(name) ?? this.#earlier.get(name);
  }

  /** Sets an entry and restarts its lifetime. */
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
