/**
 * Serves callers in turn and charges each for the cost of its items, by start-time fair queueing, as routers
 * do for packets. Every item has a start time on a virtual clock: the end of the same caller's previous item,
 * or now. The item with the earliest start is next. A caller with a thousand items therefore does not delay
 * another caller's first item, and one expensive item counts as much as many cheap ones.
 *
 * The clock advances with the work done, at the rate at which one waiting caller would be served. If it
 * stopped between starts, an endless stream of new callers would starve a caller that was served before.
 */

interface Entry<Item> {
  readonly item: Item;
  /** Time on the virtual clock. */
  readonly startMs: number;
  readonly costMs: number;
}

/** The items of one caller, oldest first. */
interface Flow<Item> {
  readonly waiting: Entry<Item>[];
  /** Breaks ties between callers whose items have the same start. */
  order: number;
  /** End of the newest item, on the virtual clock. */
  endMs: number;
}

export interface Charge {
  /** The caller to charge. */
  readonly caller: string;
  /** Milliseconds of one thread. */
  readonly costMs: number;
  /** Head start over callers without credit, in milliseconds of the virtual clock. */
  readonly creditMs?: number;
  /** The caller's share relative to other callers; default 1. */
  readonly weight?: number;
}

/** Maximum idle callers to remember before old ones are evicted. */
const maxRemembered = 1000;

/** Serves callers in turn, weighted by cost. */
export class FairQueue<Item> {
  readonly #flows = new Map<string, Flow<Item>>();
  /** Waiting flows as a binary heap: the flow whose oldest item starts earliest is at index 0. */
  readonly #heap: Flow<Item>[] = [];
  /** The virtual clock at the start of the item served last. */
  #nowMs = 0;
  /** Clock advance until the next item starts. */
  #servingMs = 0;
  #pushed = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Returns how many items of a caller are waiting. */
  countOf(caller: string): number {
    return this.#flows.get(caller)?.waiting.length ?? 0;
  }

  push(item: Item, { caller, costMs, creditMs = 0, weight = 1 }: Charge): void {
    const flow = this.#flows.get(caller) ?? { waiting: [], order: 0, endMs: Number.NEGATIVE_INFINITY };
    this.#flows.set(caller, flow);
    const startMs = Math.max(this.#nowMs - creditMs, flow.endMs);
    flow.endMs = startMs + costMs / weight;
    flow.waiting.push({ item, startMs, costMs });
    this.#size += 1;
    if (flow.waiting.length > 1) return;
    this.#pushed += 1;
    flow.order = this.#pushed;
    this.#heap.push(flow);
    this.#raise(this.#heap.length - 1);
  }

  /** Removes and returns the next item; undefined if none is waiting. */
  pop(): Item | undefined {
    const [first] = this.#heap;
    const entry = first?.waiting.shift();
    if (first === undefined || entry === undefined) return undefined;
    this.#size -= 1;
    // A credit sets back only its caller's clock, not the shared one.
    this.#nowMs = Math.max(this.#nowMs + this.#servingMs, entry.startMs);
    this.#servingMs = entry.costMs / this.#heap.length;
    this.#pushed += 1;
    first.order = this.#pushed;
    if (first.waiting.length === 0) this.#removeFirst();
    else this.#lower(0);
    if (this.#size === 0) this.#restart();
    else if (this.#flows.size > this.#heap.length + maxRemembered) this.#forgetIdle();
    return entry.item;
  }

  /** Resets the clock and forgets all callers once no items are waiting. */
  #restart(): void {
    this.#flows.clear();
    this.#nowMs = 0;
    this.#servingMs = 0;
  }

  #forgetIdle(): void {
    for (const [caller, { waiting, endMs }] of this.#flows)
      if (waiting.length === 0 && endMs <= this.#nowMs) this.#flows.delete(caller);
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#lower(0);
  }

  #raise(from: number): void {
    for (let index = from; index > 0; ) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(index, parent)) return;
      this.#swap(index, parent);
      index = parent;
    }
  }

  #lower(from: number): void {
    for (let index = from; ; ) {
      let least = index;
      for (const child of [2 * index + 1, 2 * index + 2])
        if (child < this.#heap.length && this.#isBefore(child, least)) least = child;
      if (least === index) return;
      this.#swap(index, least);
      index = least;
    }
  }

  #isBefore(left: number, right: number): boolean {
    const [a, b] = [this.#heap[left], this.#heap[right]];
    const [aMs = 0, bMs = 0] = [a?.waiting[0]?.startMs, b?.waiting[0]?.startMs];
    return aMs === bMs ? (a?.order ?? 0) < (b?.order ?? 0) : aMs < bMs;
  }

  #swap(left: number, right: number): void {
    const [a, b] = [this.#heap[left], this.#heap[right]];
    if (a === undefined || b === undefined) return;
    this.#heap[left] = b;
    this.#heap[right] = a;
  }
}
