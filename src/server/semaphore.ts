/** A counting semaphore that never waits: limits how many of something exist at the same time. */
export class Semaphore {
  readonly limit: number;
  #acquired = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** How many are acquired now. */
  get acquired(): number {
    return this.#acquired;
  }

  /**
   * Acquires one if available.
   *
   * @returns whether it was acquired
   */
  tryAcquire(): boolean {
    if (this.#acquired >= this.limit) return false;
    this.#acquired += 1;
    return true;
  }

  /** Releases one. */
  release(): void {
    this.#acquired -= 1;
  }
}
