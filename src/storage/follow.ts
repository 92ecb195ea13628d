/** Follows a list that grows at its end, however its rows come: from this program or from another. */

/** Rows to read at once. */
const chunkRows = 500;
/** Milliseconds between looks for rows of other programs; those of this one are told at once. */
const lookMs = 500;

/** What to follow. */
export interface Following<Row> {
  /** Begins after this position. */
  readonly after: number;
  /** Reads rows after a position, in their order; it may give fewer than there are, but none only at their end. */
  readonly read: (after: number, limit: number) => Promise<readonly Row[]>;
  readonly positionOf: (row: Row) => number;
  /** Calls back after this program wrote. @returns stops it */
  readonly onWrite: (listener: () => void) => () => void;
  readonly signal: AbortSignal;
}

/**
 * Gives rows as they come, in their order and each once, at the pace of whoever takes them.
 *
 * It relies on rows being written in the order of their positions, which the store's one writer sees to.
 */
export async function* follow<Row>(following: Following<Row>): AsyncGenerator<Row> {
  const { read, positionOf, onWrite, signal } = following;
  const bell = createBell();
  const stopListening = onWrite(bell.ring);
  try {
    let last = following.after;
    while (!signal.aborted) {
      const rows = await read(last, chunkRows);
      for (const row of rows) {
        last = positionOf(row);
        yield row;
      }
      if (rows.length === 0) await bell.wait(lookMs, signal);
    }
  } finally {
    stopListening();
  }
}

/** Something to wait for that may have happened already. */
function createBell() {
  let hasRung = false;
  let wake: (() => void) | undefined;
  const ring = (): void => {
    hasRung = true;
    wake?.();
  };
  return {
    ring,
    async wait(limitMs: number, signal: AbortSignal): Promise<void> {
      if (!hasRung && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, limitMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
          signal.addEventListener("abort", wake, { once: true });
        });
        if (wake) signal.removeEventListener("abort", wake);
        wake = undefined;
      }
      hasRung = false;
    },
  };
}
