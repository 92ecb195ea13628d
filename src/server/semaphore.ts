/** A semaphore: so many of something at a time. */
export class Semaphore {
  readonly limit: number;
  #acquired = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** How many have it now. */
  get acquired(): number {
    return this.#acquired;
  }

  /** Takes one, if there is one left. @returns whether it was taken */
  tryAcquire(): boolean {
    if (this.#acquired >= this.limit) return false;
    this.#acquired += 1;
    return true;
  }

  /** Gives one back. */
  release(): void {
    this.#acquired -= 1;
  }
}
