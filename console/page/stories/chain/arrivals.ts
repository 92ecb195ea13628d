/** Signals that a stream has delivered a block. */

export interface Arrivals {
  /** Records a block's arrival. */
  note(index: number): void;
  /**
   * Waits for a block.
   *
   * @returns whether it arrived in time
   */
  reach(index: number, withinMs: number): Promise<boolean>;
  /** Forgets all arrivals, because the stream restarts. */
  reset(): void;
}

export function createArrivals(): Arrivals {
  let newest = -1;
  const waiting = new Set<() => void>();
  return {
    note: (index) => {
      newest = Math.max(newest, index);
      for (const look of waiting) look();
    },
    reach: (index, withinMs) =>
      new Promise((resolve) => {
        const end = (came: boolean): void => {
          clearTimeout(timer);
          waiting.delete(look);
          resolve(came);
        };
        const look = (): void => {
          if (newest >= index) end(true);
        };
        const timer = setTimeout(() => end(false), withinMs);
        waiting.add(look);
        look();
      }),
    reset: () => {
      newest = -1;
    },
  };
}
