/**
 * A log that many callers follow: one poller reads its new rows for all of them. Delivering a row to a
 * follower takes time, so followers take turns, and the event loop serves other calls after every few rows.
 */
import { createLoopTurns, type TakeTurn } from "../crypto/loop-turns.ts";
import { createRecentRows, type RecentRows } from "./recent-rows.ts";

/** Rows that the poller reads at once. */
const polledRows = 100;
/**
 * Rows that a lagging caller reads at once. A caller that stops reading holds at most this many in memory.
 */
const followedRows = 16;
/** Milliseconds between polls for other programs' rows. This program's own writes trigger a poll at once. */
const pollIntervalMs = 500;
/**
 * Rows delivered per turn of the event loop. Another call needs many turns, so it waits for a few rows in
 * each of them, not for all followers of a log.
 */
const rowsPerTurn = 8;
/** Followers to wake per turn of the event loop. */
const wokenAtOnce = 64;

/** The log behind a feed. */
export interface FeedSource<Row> {
  /** The position of the newest row; 0 if the log is empty. */
  readonly readEnd: () => Promise<number>;
  /**
   * Reads rows after a position, in order. May return fewer rows than the limit, but returns none only at the
   * end.
   *
   * @param topic only rows of this topic; all rows if empty
   */
  readonly read: (after: number, limit: number, topic: string) => Promise<readonly Row[]>;
  readonly positionOf: (row: Row) => number;
  /** Topics that the row belongs to, apart from the empty one. */
  readonly topicsOf: (row: Row) => readonly string[];
  /** Approximate size of a row in memory. */
  readonly bytesOf: (row: Row) => number;
  /** Returns the caller that requests the next row. */
  readonly callerOf: () => string;
  /**
   * Calls back after each write by this program.
   *
   * @returns a function that unsubscribes
   */
  readonly onWrite: (listener: () => void) => () => void;
}

/** The part of a log to follow. */
export interface FollowInput {
  /** Start after this position. */
  readonly after: number;
  /** Only rows of this topic; all rows if empty. */
  readonly topic: string;
  readonly signal: AbortSignal;
}

export interface Feed<Row> {
  /**
   * Yields new rows in order, each once, at the caller's pace, until the signal aborts. A caller that falls
   * behind reads from the store, a few rows at a time, so it keeps few rows in memory.
   */
  follow(input: FollowInput): AsyncGenerator<Row>;
}

/**
 * Creates a feed. It polls only while it has followers.
 *
 * Rows must be committed in position order, which the store's single writer guarantees.
 */
export function createFeed<Row>(source: FeedSource<Row>): Feed<Row> {
  let current: Poller<Row> | undefined;
  const takeTurn = createLoopTurns(rowsPerTurn);
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
  { read, positionOf, callerOf }: FeedSource<Row>,
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
      await takeTurn(callerOf());
      yield row;
    } else {
      const rows = await read(last, followedRows, topic);
      for (const row of rows) {
        last = positionOf(row);
        await takeTurn(callerOf());
        yield row;
      }
      // The read is later than `newest`, so no row of the topic lies between them.
      if (rows.length === 0) last = Math.max(last, newest);
    }
  }
}

/** Reads new rows while it has followers. */
interface Poller<Row> {
  /** The newest rows, available once the end of the log is known. Rejects if it cannot be read. */
  readonly recent: Promise<RecentRows<Row>>;
  /**
   * Adds a follower. The poller stops with its last follower.
   *
   * @returns a function that removes the follower
   */
  join(): () => void;
  /** Resolves when a row of the topic arrives, the signal aborts or the poller fails. */
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
      const ofTopic = waiting.getOrInsert(topic, new Set()).add(wakeUp);
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
