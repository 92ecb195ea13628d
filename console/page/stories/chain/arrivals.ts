/** Tells when a stream has brought a block. */

export interface Arrivals {
  /** Notes that a block came. */
  note(index: number): void;
  /** Waits for a block. @returns whether it came within the time */
  reach(index: number, withinMs: number): Promise<boolean>;
  /** Forgets what came, because the stream starts again. */
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
