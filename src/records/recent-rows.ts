/** The newest rows of a log, in memory, shared by all followers. */

/** The most rows to keep. */
const maxRows = 1000;
/** The most bytes to keep; the newest row always stays. */
const maxBytes = 2 * 1024 * 1024;

/** The newest rows, without a gap up to the newest. */
export interface RecentRows<Row> {
  /** The position of the newest row that was read from the log. */
  readonly newest: number;
  /** Adds rows that follow the newest. */
  add(rows: readonly Row[]): void;
  /** Tells whether every row after a position is here. */
  hasAllAfter(position: number): boolean;
  /** Finds the first row after a position. @param topic of this topic; of any if it is empty */
  findAfter(position: number, topic: string): Row | undefined;
}

/** Functions that describe a row. */
interface RowTraits<Row> {
  readonly positionOf: (row: Row) => number;
  readonly topicsOf: (row: Row) => readonly string[];
  readonly bytesOf: (row: Row) => number;
}

/** Starts without rows. @param end the position of the newest row of the log */
export function createRecentRows<Row>(
  { positionOf, topicsOf, bytesOf }: RowTraits<Row>,
  end: number,
): RecentRows<Row> {
  let rows: Row[] = [];
  let bytes = 0;
  /** Every row after this position is here. */
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
  /** The index of the first row after a position: a binary search. */
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
