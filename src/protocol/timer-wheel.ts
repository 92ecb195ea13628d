/** Timers for calls: one interval instead of a timer for each call. */

/** Something that ends at a time. */
export interface Expiring {
  expire(): void;
}

/** Milliseconds of a tick. An item expires up to one tick late, and never early. */
const tickMs = 10;

/**
 * Ends items at their times. Adding and removing an item costs an insertion into a set. The interval runs only while
 * there are items, and does not keep the process alive.
 */
export class TimerWheel {
  readonly #slots = new Map<number, Set<Expiring>>();
  #lastTick = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * Expires an item at a time of `performance.now()`.
   *
   * @returns the slot of the item, to remove it with
   */
  add(item: Expiring, atMs: number): number {
    const nowTick = Math.floor(performance.now() / tickMs);
    if (this.#timer === undefined) {
      this.#lastTick = nowTick;
      // After a busy stretch, what has arrived meanwhile is read first, so that it does not count as late.
      this.#timer = setInterval(() => setImmediate(this.#turn), tickMs).unref();
    }
    // A slot that has been emptied would never be read again.
    const slot = Math.max(Math.ceil(atMs / tickMs), this.#lastTick + 1);
    const items = this.#slots.get(slot);
    if (items === undefined) this.#slots.set(slot, new Set([item]));
    else items.add(item);
    return slot;
  }

  remove(item: Expiring, slot: number): void {
    const items = this.#slots.get(slot);
    if (items?.delete(item) && items.size === 0) this.#slots.delete(slot);
  }

  readonly #turn = (): void => {
    const nowTick = Math.floor(performance.now() / tickMs);
    while (this.#lastTick < nowTick) {
      this.#lastTick += 1;
      const items = this.#slots.get(this.#lastTick);
      this.#slots.delete(this.#lastTick);
      if (items !== undefined) for (const item of items) item.expire();
    }
    if (this.#slots.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };
}
