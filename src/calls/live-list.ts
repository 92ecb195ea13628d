/** Lists of short-lived items that come and go with every call. */

/** An item's place in a list. */
export interface Place {
  /** Removes the item. Idempotent. */
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
    // A removed item must not refer to newer ones.
    this.next = undefined;
    this.previous = undefined;
  }
}

/**
 * A linked list, oldest item first.
 *
 * Not a Map or Set, because V8 gives these a new table every few changes. The old table still references the
 * new one and everything that it contained. If it was promoted to the old generation, so is every later item:
 * the collector copies all of them again and again. This took a fifth of the time of a small call.
 */
export class LiveList<T> {
  size = 0;
  /** Its neighbours are the first and last item. */
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

  /** Copies the items, so that they may be removed during iteration. */
  items(): T[] {
    const items: T[] = [];
    for (let link = this.#ends.next; link?.item !== undefined; link = link.next) items.push(link.item);
    return items;
  }
}

/** Something that expires. */
export interface Expiring {
  /** The expiry time, by `performance.now()`. */
  readonly expiresAtMs: number;
  expire(): void;
}

/** Milliseconds between checks. An item expires up to this much late, and never early. */
const tickMs = 10;

/**
 * Expires items with one shared interval. It runs only while there are items, and does not keep the process
 * alive.
 */
export class Expiries<T extends Expiring> {
  readonly #list = new LiveList<T>();
  #timer: NodeJS.Timeout | undefined;

  /** Adds an item. It stays until it is removed, even after it has expired. */
  add(item: T): Place {
    // After a stall, read pending I/O first, so that it does not count as late.
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
