/** The newest rows of a log, in memory, shared by all followers. */

/** Maximum rows to keep. */
const maxRows = 1000;
/** Maximum bytes to keep; the newest row always stays. */
const maxBytes = 2 * 1024 * 1024;

/** The newest rows, without gaps. */
export interface RecentRows<Row> {
  /** Position of the newest row read from the log. */
  readonly newest: number;
  /** Adds rows that follow the newest. */
  add(rows: readonly Row[]): void;
  /** Returns whether every row after a position is in memory. */
  hasAllAfter(position: number): boolean;
  /**
   * Finds the first row after a position.
   *
   * @param topic the row's topic; empty for any
   */
  findAfter(position: number, topic: string): Row | undefined;
}

/** Functions that describe a row. */
interface RowTraits<Row> {
  readonly positionOf: (row: Row) => number;
  readonly topicsOf: (row: Row) => readonly string[];
  readonly bytesOf: (row: Row) => number;
}

/**
 * Starts without rows.
 *
 * @param end position of the newest row in the log
 */
export function createRecentRows<Row>(
  { positionOf, topicsOf, bytesOf }: RowTraits<Row>,
  end: number,
): RecentRows<Row> {
  let rows: Row[] = [];
  let bytes = 0;
  /** Every row after this position is in memory. */
  let complete = end;
  let newest = end;

  const trim = (): void => {
    let dropped = 0;
    while (rows.length - dropped > 1 && (rows.length - dropped > maxRows || bytes > maxBytes)) {
      const row = rows[dropped] as Row;
      bytes -= bytesOf(row);
      complete = positionOf(row);
      dropped += 1;
    }
    if (dropped > 0) rows = rows.slice(dropped);
  };
  /** Returns the index of the first row after a position, by binary search. */
  const indexAfter = (position: number): number => {
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (positionOf(rows[middle] as Row) > position) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  return {
    get newest() {
      return newest;
    },
    add(added) {
      for (const row of added) {
        rows.push(row);
        bytes += bytesOf(row);
        newest = positionOf(row);
      }
      trim();
    },
    hasAllAfter: (position) => position >= complete,
    findAfter(position, topic) {
      for (let i = indexAfter(position); i < rows.length; i += 1) {
        const row = rows[i] as Row;
        if (topic === "" || topicsOf(row).includes(topic)) return row;
      }
      return undefined;
    },
  };
}
