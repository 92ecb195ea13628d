import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { BackgroundFailure } from "../../src/database/background.ts";
import { createDueWork, type DueItem } from "../../src/database/due-work.ts";
import { poll } from "../../src/database/poll.ts";

/** Work on items that are due in number order. Failed items stay due, like items that were not processed. */
function startWork(items: number, fails: (position: number) => boolean) {
  let nowMs = 1_000_000;
  let due = Array.from({ length: items }, (_, i) => i);
  const failures: BackgroundFailure[] = [];
  const overdue: unknown[][] = [];
  const attempts: number[] = [];
  let pages = 0;
  const toItem = (position: number): DueItem => ({
    dueAtMs: position,
    position,
    about: { item: String(position) },
    run: async () => {
      attempts.push(position);
      if (fails(position)) throw new Error(`item ${position} fails`);
      due = due.filter((one) => one !== position);
    },
  });
  const background = {
    started: () => {},
    failed: (failure: BackgroundFailure) => void failures.push(failure),
    overdue: (...report: unknown[]) => void overdue.push(report),
  };
  const work = createDueWork(
    {
      work: "test",
      list: async (atMs, limit, after) => {
        pages += 1;
        const found = due.filter((position) => position <= atMs && position > after.position);
        return found.slice(0, limit).map(toItem);
      },
      count: async (atMs) => due.filter((position) => position <= atMs).length,
    },
    { background, now: () => new Date(nowMs) },
  );
  return {
    ...work,
    failures,
    overdue,
    attempts,
    pass: (ms: number) => {
      nowMs += ms;
    },
    due: () => due,
    takePages: () => {
      const read = pages;
      pages = 0;
      return read;
    },
  };
}

it("reaches the one item that succeeds behind 5,000 that fail", async () => {
  const work = startWork(5001, (position) => position < 5000);
  for (let call = 0; call < 79; call += 1) await work.doDue();
  expect(work.due()).toHaveLength(5000);
  // All others failed once, and the first of them are waiting for their second attempt.
  expect(work.attempts).toHaveLength(5001);
});

it("processes 64 items per run, and reads a limited number of pages, even if all items wait", async () => {
  const work = startWork(5000, () => true);
  await work.doDue();
  expect(work.attempts).toHaveLength(64);
  for (let call = 0; call < 79; call += 1) await work.doDue();
  work.takePages();
  await work.doDue();
  expect(work.takePages()).toBeLessThanOrEqual(16);
});

it("retries a failed item after 1, 2, 4 seconds and so on, up to an hour", async () => {
  const work = startWork(1, () => true);
  await work.doDue();
  for (let attempt = 1; attempt <= 16; attempt += 1) {
    const waitMs = Math.min(2 ** (attempt - 1), 3600) * 1000;
    work.pass(waitMs - 1);
    await work.doDue();
    expect(work.attempts).toHaveLength(attempt);
    work.pass(1);
    await work.doDue();
    expect(work.attempts).toHaveLength(attempt + 1);
  }
});

it("reports each failure with the item that it concerns", async () => {
  const work = startWork(3, (position) => position === 1);
  await work.doDue();
  work.pass(1000);
  await work.doDue();
  const failure = { work: "test", error: new Error("item 1 fails"), about: { item: "1" } };
  expect(work.failures).toEqual([
    { ...failure, isRepeated: false },
    { ...failure, isRepeated: true },
  ]);
  expect(work.due()).toEqual([1]);
});

it("reports how many items have been due for over a minute, and the age of the oldest", async () => {
  const work = startWork(3, () => true);
  work.pass(-1_000_000 + 60_001);
  await work.reportOverdue();
  work.pass(100_000);
  await work.reportOverdue();
  const idle = startWork(0, () => true);
  await idle.reportOverdue();
  expect([...work.overdue, ...idle.overdue]).toEqual([
    ["test", 2, 60.001],
    ["test", 3, 160.001],
    ["test", 0, 0],
  ]);
});

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function observe() {
  const started: string[] = [];
  const failures: BackgroundFailure[] = [];
  const background = {
    started: (work: string) => void started.push(work),
    failed: (failure: BackgroundFailure) => void failures.push(failure),
  };
  return { started, failures, background };
}

it("reports every failure, and marks repeated ones", async () => {
  const { background, failures, started } = observe();
  const stop = poll({ work: "test", everyMs: 10, background }, () => Promise.reject(new Error("no store")));
  await vi.advanceTimersByTimeAsync(90);
  await stop();
  expect(started).toEqual(["test"]);
  expect(failures.map(({ work, error }) => [work, String(error)])).toEqual(
    Array(9).fill(["test", "Error: no store"]),
  );
  expect(failures.flatMap(({ isRepeated }, i) => (isRepeated ? [] : [i + 1]))).toEqual([1, 2, 4, 8]);
});

it("continues after a failure, and does not mark the next failure as repeated if a call succeeded in between", async () => {
  const { background, failures } = observe();
  let calls = 0;
  const stop = poll({ work: "test", everyMs: 10, startsAtOnce: true, background }, async () => {
    calls += 1;
    if (calls % 2 === 0) throw new Error("every other call");
  });
  await vi.advanceTimersByTimeAsync(60);
  await stop();
  expect(calls).toBe(7);
  expect(failures.map(({ isRepeated }) => isRepeated)).toEqual([false, false, false]);
});

it("reports an error thrown synchronously by the function, and calls it again", async () => {
  const { background, failures } = observe();
  const stop = poll({ work: "test", everyMs: 10, startsAtOnce: true, background }, () => {
    throw new Error("at once");
  });
  await vi.advanceTimersByTimeAsync(20);
  await stop();
  expect(failures).toHaveLength(3);
});

it("makes one call at a time, and stops after the running one", async () => {
  const { background } = observe();
  const { promise, resolve } = Promise.withResolvers<void>();
  let calls = 0;
  const stop = poll({ work: "test", everyMs: 10, background }, () => {
    calls += 1;
    return promise;
  });
  await vi.advanceTimersByTimeAsync(100);
  let hasStopped = false;
  const stopping = stop().then(() => {
    hasStopped = true;
  });
  await vi.advanceTimersByTimeAsync(100);
  expect([calls, hasStopped]).toEqual([1, false]);
  resolve();
  await stopping;
  expect(calls).toBe(1);
});

it("an item that keeps failing is reported as repeated, until it fails for a different reason", async () => {
  const messages = ["first", "first", "first", "second", "second"];
  const about = { item: "1" };
  const reports: unknown[] = [];
  let nowMs = 1_000_000;
  const run = async () => {
    throw new Error(messages[reports.length]);
  };
  const { doDue } = createDueWork(
    { work: "test", list: async () => [{ dueAtMs: 1, position: 1, about, run }], count: async () => 1 },
    {
      background: {
        started: () => {},
        failed: ({ isRepeated }) => void reports.push(isRepeated),
        overdue: () => {},
      },
      now: () => new Date(nowMs),
    },
  );
  for (const _ of messages) {
    await doDue();
    nowMs += 3_600_000;
  }
  expect(reports).toEqual([false, true, true, false, true]);
});
