import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { BackgroundFailure } from "../../src/database/background.ts";
import { poll } from "../../src/database/poll.ts";

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
