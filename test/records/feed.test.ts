import { AsyncLocalStorage } from "node:async_hooks";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { createFeed, type FeedSource } from "../../src/records/feed.ts";

/** The callers of rows, as the server names them. */
const callers = new AsyncLocalStorage<string>();

interface Row {
  readonly position: number;
  readonly topic: string;
}

/** An in-memory log that counts its reads. */
function createLog(topics: readonly string[] = []) {
  const rows: Row[] = topics.map((topic, i) => ({ position: i + 1, topic }));
  const listeners = new Set<() => void>();
  const log = {
    reads: 0,
    rowsRead: 0,
    listeners,
    failure: undefined as Error | undefined,
    /** Appends rows as another program would. */
    append(...added: readonly string[]) {
      for (const topic of added) rows.push({ position: rows.length + 1, topic });
    },
    /** Appends rows as this program would. */
    write(...added: readonly string[]) {
      log.append(...added);
      for (const listener of listeners) listener();
    },
  };
  const source: FeedSource<Row> = {
    readEnd: async () => rows.length,
    async read(after, limit, topic) {
      log.reads += 1;
      if (log.failure) throw log.failure;
      const found = rows.filter((row) => row.position > after && (topic === "" || row.topic === topic));
      const page = found.slice(0, limit);
      log.rowsRead += page.length;
      return page;
    },
    positionOf: ({ position }) => position,
    topicsOf: ({ topic }) => [topic],
    bytesOf: () => 10,
    callerOf: () => callers.getStore() ?? "",
    onWrite(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  return { ...{ feed: createFeed(source) }, log };
}

/** Follows until the test ends or the caller stops. */
function follow({ feed }: ReturnType<typeof createLog>, after: number, topic = "") {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const rows = feed.follow({ after, topic, signal: stop.signal });
  const take = async (count: number): Promise<number[]> => {
    const positions: number[] = [];
    while (positions.length < count) {
      const { value, done } = await rows.next();
      if (done) throw new Error("the feed ended");
      positions.push(value.position);
    }
    return positions;
  };
  return { rows, take, stop: () => stop.abort() };
}

const from = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i);
const many = (count: number, topic = "a"): string[] => Array(count).fill(topic);

describe("a feed", () => {
  afterEach(() => void vi.useRealTimers());

  it("reads few rows at once for a lagging caller, because a caller that stops reading holds them", async () => {
    const subject = createLog(many(250));
    await follow(subject, 0).take(1);
    expect(subject.log.rowsRead).toBeLessThanOrEqual(16);
  });

  it("reads each new row once, however many callers follow", async () => {
    const subject = createLog(many(3));
    const followers = from(0, 500).map(() => follow(subject, 3));
    const first = followers.map(({ take }) => take(1));
    // The first polls have found nothing; counting starts here.
    await expect.poll(() => subject.log.reads).toBeGreaterThan(0);
    subject.log.write("a");
    expect(new Set((await Promise.all(first)).flat())).toEqual(new Set([4]));
    const reads = subject.log.reads;
    const second = followers.map(({ take }) => take(2));
    subject.log.write("a", "a");
    await Promise.all(second);
    // One read finds them, and the next finds no more.
    expect(subject.log.reads - reads).toBeLessThanOrEqual(4);
  });

  it("polls the store twice a second, however many callers wait, finds rows of other programs, and pauses without followers", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const subject = createLog(many(3));
    const followers = from(0, 100).map(() => follow(subject, 3));
    const ended = followers.map(({ rows }) => rows.next());
    await expect.poll(() => subject.log.reads).toBe(1);
    for (let i = 0; i < 20; i += 1) await vi.advanceTimersByTimeAsync(500);
    expect(subject.log.reads).toBeGreaterThan(1);
    expect(subject.log.reads).toBeLessThanOrEqual(21);
    // As another program would.
    subject.log.append("a");
    await vi.advanceTimersByTimeAsync(500);
    expect((await Promise.all(ended)).map(({ value }) => value?.position)).toEqual(Array(100).fill(4));
    const last = followers.map(({ rows }) => rows.next());
    for (const { stop } of followers) stop();
    await Promise.all(last);
    const reads = subject.log.reads;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(subject.log.reads).toBe(reads);
    expect(subject.log.listeners.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    const again = follow(subject, 4).take(1);
    await expect.poll(() => subject.log.listeners.size).toBe(1);
    subject.log.write("a");
    expect(await again).toEqual([5]);
  });

  it("delivers only rows of the topic, and does not wake its followers for other topics", async () => {
    const subject = createLog(["a", "b", "a"]);
    const { take } = follow(subject, 0, "b");
    expect(await take(1)).toEqual([2]);
    const next = take(1);
    const witness = follow(subject, 3);
    // More than the feed keeps in memory.
    for (const rows of [many(1500), ["b"]]) subject.log.write(...rows);
    expect(await witness.take(1501)).toEqual(from(4, 1501));
    expect(await next).toEqual([1504]);
  });

  it("delivers every row once to a slow follower, from the store", async () => {
    const subject = createLog();
    const slow = follow(subject, 0);
    const fast = follow(subject, 0);
    const begun = slow.take(1);
    const seen = fast.take(3000);
    await expect.poll(() => subject.log.listeners.size).toBe(1);
    subject.log.write(...many(3000));
    expect(await begun).toEqual([1]);
    expect(await seen).toEqual(from(1, 3000));
    expect(await slow.take(2999)).toEqual(from(2, 2999));
  });

  it("delivers 8 rows per turn of the event loop, however many callers follow", async () => {
    const subject = createLog(many(3));
    const followers = from(0, 500).map(() => follow(subject, 3));
    let received = 0;
    const all = followers.map(async ({ take }) => {
      for (let i = 0; i < 4; i += 1) {
        await take(1);
        received += 1;
      }
    });
    await expect.poll(() => subject.log.reads).toBeGreaterThan(0);
    subject.log.write(...many(4));
    const perTurn: number[] = [];
    while (received < 2000) {
      const before = received;
      await new Promise(setImmediate);
      perTurn.push(received - before);
    }
    await Promise.all(all);
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(16); // Two turns, if one ends in between.
  });

  it("delivers rows to a caller in turn with another caller that has 500 followers", async () => {
    const subject = createLog(many(3));
    const order: string[] = [];
    const followAs = (caller: string) => {
      const { take } = follow(subject, 0);
      return async () => {
        for (let i = 0; i < 3; i += 1) {
          await callers.run(caller, () => take(1));
          order.push(caller);
        }
      };
    };
    const crowd = from(0, 500).map(() => followAs("mallory"));
    const victim = followAs("victim");
    await Promise.all([...crowd, victim].map((take) => take()));
    expect(order.lastIndexOf("victim")).toBeLessThan(100);
  });

  it("ends all followers if the store cannot be read, and restarts with the next one", async () => {
    const subject = createLog(many(3));
    const followers = from(0, 10).map(() => follow(subject, 3).take(1));
    await expect.poll(() => subject.log.reads).toBeGreaterThan(0);
    subject.log.failure = new Error("the store is down");
    subject.log.write("a");
    for (const one of followers) await expect(one).rejects.toThrow("the store is down");
    expect(subject.log.listeners.size).toBe(0);
    subject.log.failure = undefined;
    expect(await follow(subject, 3).take(1)).toEqual([4]);
  });

  it("keeps nothing of a follower that left while waiting", async () => {
    const subject = createLog(many(3));
    const stays = follow(subject, 3);
    const next = stays.take(1);
    const gone = from(0, 10).map((i) => follow(subject, 3, `topic ${i}`));
    const ended = gone.map(({ rows }) => rows.next());
    await expect.poll(() => subject.log.reads).toBeGreaterThan(0);
    for (const { stop } of gone) stop();
    expect((await Promise.all(ended)).every(({ done }) => done)).toBe(true);
    subject.log.write("a");
    expect(await next).toEqual([4]);
  });
});
