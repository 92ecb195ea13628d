/**
 * A log that many callers follow: one poller reads its new rows for all of them. Each follower costs time for each row,
 * so callers take turns, and the event loop has time for other calls between a few rows.
 */
import { createLoopTurns, type TakeTurn } from "../crypto/loop-turns.ts";
import { createRecentRows, type RecentRows } from "./recent-rows.ts";

/** Rows that the poller reads at once. */
const polledRows = 100;
/** Rows that a caller who is behind reads at once. A caller who stops reading holds at most this many in memory. */
const followedRows = 16;
/** Milliseconds between polls for rows of other programs. A write of this program polls at once. */
const pollIntervalMs = 500;
/**
 * Rows that followers receive in one turn of the event loop. A call takes many turns, so it waits for a few rows each
 * time, and not for all followers of a log.
 */
const rowsPerTurn = 8;
/** Followers to wake in one turn of the event loop. */
const wokenAtOnce = 64;

/** The log of a feed. */
export interface FeedSource<Row> {
  /** The position of the newest row; 0 if there is none. */
  readonly readEnd: () => Promise<number>;
  /**
   * Reads rows after a position, in order. It may return fewer rows than the limit, but no rows only at the end.
   *
   * @param topic only rows of this topic; all if it is empty
   */
  readonly read: (after: number, limit: number, topic: string) => Promise<readonly Row[]>;
  readonly positionOf: (row: Row) => number;
  /** The topics that the row belongs to, apart from the empty one. */
  readonly topicsOf: (row: Row) => readonly string[];
  /** The approximate size of a row in memory. */
  readonly bytesOf: (row: Row) => number;
  /** Names the caller who asks for the next row. */
  readonly callerOf: () => string;
  /** Calls back after each write of this program. @returns a function that stops it */
  readonly onWrite: (listener: () => void) => () => void;
}

/** The part of a log that a caller follows. */
export interface FollowInput {
  /** Begins after this position. */
  readonly after: number;
  /** Only rows of this topic; all if it is empty. */
  readonly topic: string;
  readonly signal: AbortSignal;
}

/** A log that can be followed. */
export interface Feed<Row> {
  /**
   * Yields new rows in order, each once, at the pace of the caller, until the signal aborts. A caller who falls behind
   * reads from the store, a few rows at a time, so a slow caller keeps few rows in memory.
   */
  follow(input: FollowInput): AsyncGenerator<Row>;
}

/**
 * Creates a feed. It polls only while it has followers.
 *
 * It relies on rows being committed in the order of their positions, which the store's single writer guarantees.
 */
export function createFeed<Row>(source: FeedSource<Row>): Feed<Row> {
  let current: Poller<Row> | undefined;
  const takeTurn = createLoopTurns(rowsPerTurn, source.callerOf);
  return {
    async *follow({ after, topic, signal }) {
      if (current === undefined || current.hasEnded()) current = startPoller(source);
      const poller = current;
      const leave = poller.join();
      try {
        yield* followPoller(source, poller, takeTurn, { after, topic, signal });
      } finally {
        leave();
      }
    },
  };
}

async function* followPoller<Row>(
  { read, positionOf }: FeedSource<Row>,
  poller: Poller<Row>,
  takeTurn: TakeTurn,
  { after, topic, signal }: FollowInput,
): AsyncGenerator<Row> {
  const recent = await poller.recent;
  let last = after;
  while (!signal.aborted) {
    poller.throwIfFailed();
    const { newest } = recent;
    if (last >= newest) {
      await poller.wait(topic, signal);
    } else if (recent.hasAllAfter(last)) {
      const row = recent.findAfter(last, topic);
      last = row === undefined ? newest : positionOf(row);
      if (row === undefined) continue;
      await takeTurn();
      yield row;
    } else {
      const rows = await read(last, followedRows, topic);
      for (const row of rows) {
        last = positionOf(row);
        await takeTurn();
        yield row;
      }
      // The read is later than `newest`, so no row of the topic is between them.
      if (rows.length === 0) last = Math.max(last, newest);
    }
  }
}

/** Reads new rows while it has followers. */
interface Poller<Row> {
  /** The newest rows, once the end of the log is known. Rejects if it cannot be read. */
  readonly recent: Promise<RecentRows<Row>>;
  /** Adds a follower. @returns a function that removes it; the poller ends with the last one */
  join(): () => void;
  /** Resolves when a row of the topic comes, the signal aborts or the poller fails. */
  wait(topic: string, signal: AbortSignal): Promise<void>;
  throwIfFailed(): void;
  hasEnded(): boolean;
}

function startPoller<Row>(source: FeedSource<Row>): Poller<Row> {
  const { read, readEnd, topicsOf, onWrite } = source;
  const ended = new AbortController();
  const waiting = new Map<string, Set<() => void>>();
  let followers = 0;
  let failure: { readonly error: unknown } | undefined;
  let poll = (): void => {};

  const wake = async (topics: Iterable<string>): Promise<void> => {
    const woken = [...topics].flatMap((topic) => {
      const followersOfTopic = [...(waiting.get(topic) ?? [])];
      waiting.delete(topic);
      return followersOfTopic;
    });
    for (let i = 0; i < woken.length; i += wokenAtOnce) {
      for (const resolve of woken.slice(i, i + wokenAtOnce)) resolve();
      await new Promise(setImmediate);
    }
  };
  const fail = (error: unknown): void => {
    failure = { error };
    ended.abort();
    void wake([...waiting.keys()]);
  };
  const readNew = async (recent: RecentRows<Row>): Promise<void> => {
    for (;;) {
      const rows = await read(recent.newest, polledRows, "");
      if (rows.length === 0 || ended.signal.aborted) return;
      recent.add(rows);
      await wake(new Set(["", ...rows.flatMap(topicsOf)]));
    }
  };
  const pollUntilEnded = async (recent: RecentRows<Row>): Promise<void> => {
    let isPolling = false;
    let isDue = false;
    poll = () => {
      isDue = true;
      if (isPolling || ended.signal.aborted) return;
      isPolling = true;
      void (async () => {
        while (isDue && !ended.signal.aborted) {
          isDue = false;
          await readNew(recent);
        }
        isPolling = false;
      })().catch(fail);
    };
    const timer = setInterval(poll, pollIntervalMs).unref();
    ended.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
    poll();
  };

  const stopListening = onWrite(() => poll());
  ended.signal.addEventListener("abort", stopListening, { once: true });
  const recent = readEnd().then((newest) => {
    const rows = createRecentRows(source, newest);
    if (!ended.signal.aborted) void pollUntilEnded(rows);
    return rows;
  });
  recent.catch(fail);

  return {
    recent,
    join() {
      followers += 1;
      return () => {
        followers -= 1;
        if (followers === 0) ended.abort();
      };
    },
    async wait(topic, signal) {
      if (signal.aborted || failure !== undefined) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const wakeUp = (): void => resolve();
      const ofTopic = waiting.get(topic) ?? new Set();
      waiting.set(topic, ofTopic.add(wakeUp));
      signal.addEventListener("abort", wakeUp, { once: true });
      await promise;
      signal.removeEventListener("abort", wakeUp);
      ofTopic.delete(wakeUp);
      if (ofTopic.size === 0 && waiting.get(topic) === ofTopic) waiting.delete(topic);
    },
    throwIfFailed() {
      if (failure !== undefined) throw failure.error;
    },
    hasEnded: () => ended.signal.aborted,
  };
}
