/** Lists of what comes and goes with every call. */

/** The place of an item in a list. */
export interface Place {
  /** Removes the item. A second call does nothing. */
  leave(): void;
}

class Link<T> implements Place {
  readonly item: T | undefined;
  next: Link<T> | undefined;
  previous: Link<T> | undefined;
  readonly #list: { size: number };

  constructor(list: { size: number }, item?: T) {
    this.#list = list;
    this.item = item;
  }

  leave(): void {
    const { next, previous } = this;
    if (next === undefined || previous === undefined) return;
    this.#list.size -= 1;
    previous.next = next;
    next.previous = previous;
    // What has left must not refer to what came later.
    this.next = undefined;
    this.previous = undefined;
  }
}

/**
 * A list, oldest item first.
 *
 * It is not a Map or a Set, because V8 gives these a new table every few changes. The old table still refers to the new
 * one and to everything that it held. If it has lived long enough to be collected only rarely, then so does everything that
 * comes and goes after it: the collector copies all of that again and again. This took a fifth of the time of a small call.
 */
export class LiveList<T> {
  size = 0;
  /** Its neighbours are the first and the last item. */
  readonly #ends = new Link<T>(this);

  constructor() {
    this.#ends.next = this.#ends;
    this.#ends.previous = this.#ends;
  }

  add(item: T): Place {
    const link = new Link(this, item);
    this.size += 1;
    const { previous = this.#ends } = this.#ends;
    link.previous = previous;
    link.next = this.#ends;
    previous.next = link;
    this.#ends.previous = link;
    return link;
  }

  /** Copies the items, so that they may leave meanwhile. */
  items(): T[] {
    const items: T[] = [];
    for (let link = this.#ends.next; link?.item !== undefined; link = link.next) items.push(link.item);
    return items;
  }
}

/** Something that ends at a time. */
export interface Expiring {
  /** The time, by `performance.now()`. */
  readonly expiresAtMs: number;
  expire(): void;
}

/** Milliseconds between two looks. An item expires up to so much late, and never early. */
const tickMs = 10;

/** Ends items at their times, with one interval. It runs only while there are items, and does not keep the process alive. */
export class Expiries<T extends Expiring> {
  readonly #list = new LiveList<T>();
  #timer: NodeJS.Timeout | undefined;

  /** Adds an item. It stays until it leaves, even when it has expired. */
  add(item: T): Place {
    // After a busy stretch, what has arrived meanwhile is read first, so that it does not count as late.
    this.#timer ??= setInterval(() => setImmediate(this.#look), tickMs).unref();
    return this.#list.add(item);
  }

  items(): T[] {
    return this.#list.items();
  }

  readonly #look = (): void => {
    const nowMs = performance.now();
    for (const item of this.#list.items()) if (item.expiresAtMs <= nowMs) item.expire();
    if (this.#list.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };
}
