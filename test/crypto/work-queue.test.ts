import { describe, expect, it } from "vitest";
import { CryptoBusyError, systemCaller, WorkQueue } from "../../src/crypto/work-queue.ts";

const maxWaitMs = 1000;

/** Longer than any wait in these tests, in milliseconds. */
const anyBacklogMs = 1e6;

/** A queue on a manual clock, and a list of the work that reached its threads, in order. */
function createQueue(threads: number, maxBacklogMs = anyBacklogMs, busyElsewhere = () => 0) {
  let nowMs = 0;
  const begun: string[] = [];
  const pieces = new Map<string, PromiseWithResolvers<string>>();
  const queue = new WorkQueue({ threads, maxWaitMs, maxBacklogMs, busyElsewhere, now: () => nowMs });
  const ask =
    (costMs: number, isUnbounded: boolean) =>
    (name: string, caller = "ada"): Promise<string> =>
      queue.run({
        caller,
        costMs,
        isSlow: costMs > 20,
        isUnbounded,
        start: () => {
          begun.push(name);
          const piece = Promise.withResolvers<string>();
          pieces.set(name, piece);
          return piece.promise;
        },
      });
  return {
    queue,
    begun,
    quick: ask(1, false),
    slow: ask(600, false),
    unbounded: ask(600, true),
    ask,
    pass: (ms: number) => {
      nowMs += ms;
    },
    end: (name: string, tookMs = 600) => {
      nowMs += tookMs;
      pieces.get(name)?.resolve(name);
    },
    fail: (name: string) => pieces.get(name)?.reject(new Error(name)),
  };
}

/** How a piece of work ended: "busy" if it was rejected. */
function outcome(work: Promise<string>): Promise<string> {
  return work.catch((error: Error) =>
    error instanceof CryptoBusyError ? "busy" : `failed ${error.message}`,
  );
}

describe("WorkQueue", () => {
  it("hands each thread 10 ms of quick work, and more as work completes", async () => {
    const { ask, begun, end } = createQueue(2);
    const quick = ask(2, false);
    const names = Array.from({ length: 100 }, (_, i) => `quick ${i}`);
    const all = names.map((name) => quick(name));
    expect(begun).toEqual(names.slice(0, 10));
    end("quick 0", 2);
    await all[0];
    expect(begun).toEqual(names.slice(0, 11));
  });

  it("leaves cores to other work, except one", () => {
    let busy = 1;
    const { ask, begun } = createQueue(2, anyBacklogMs, () => busy);
    const quick = ask(2, false);
    const askTimes = (times: number): void => {
      for (let i = 0; i < times; i += 1) void quick("quick");
    };
    askTimes(100);
    expect(begun).toHaveLength(5);
    busy = 2;
    askTimes(100);
    expect(begun).toHaveLength(5);
  });

  it.each([
    { threads: 1, places: 1 },
    { threads: 2, places: 1 },
    { threads: 4, places: 3 },
  ])("limits slow work to $places of $threads threads", ({ threads, places }) => {
    const { unbounded, begun } = createQueue(threads);
    const names = Array.from({ length: 6 }, (_, i) => `slow ${i}`);
    for (const name of names) void unbounded(name);
    expect(begun).toEqual(names.slice(0, places));
  });

  it("gives a free thread to waiting work, not to work that arrives at that moment", async () => {
    const { unbounded, begun, end } = createQueue(2);
    const first = unbounded("slow 1");
    void unbounded("slow 2");
    end("slow 1");
    await first.then(() => void unbounded("slow 3"));
    expect(begun).toEqual(["slow 1", "slow 2"]);
  });

  it("does not reject quick work while slow work fills its lane", () => {
    const { unbounded, quick, begun, queue } = createQueue(2);
    for (let i = 0; i < 10; i++) void unbounded(`slow ${i}`);
    expect(queue.expectedWaitMs).toBe(0);
    void quick("quick");
    expect(begun).toContain("quick");
  });

  it("rejects quick work by its wait for the remaining threads", async () => {
    const { ask, unbounded, queue } = createQueue(2);
    const quick = ask(15, false);
    for (let i = 0; i < 100; i++) void quick(`quick ${i}`);
    expect(queue.expectedWaitMs).toBe(750);
    void unbounded("slow");
    expect(queue.expectedWaitMs).toBe(1500);
    expect(await outcome(quick("one more"))).toBe("busy");
  });

  it("rejects slow work by the wait in its own lane", async () => {
    const { slow, begun, queue } = createQueue(2);
    void slow("slow 1");
    void slow("slow 2");
    expect(queue.expectedSlowWaitMs).toBe(1200);
    await expect(slow("slow 3")).rejects.toMatchObject({ name: "CryptoBusy", retryMs: 1200 });
    expect([begun, queue.depth]).toEqual([["slow 1"], 2]);
  });

  it("counts only the remaining time of running slow work", () => {
    const { slow, queue, pass } = createQueue(2);
    void slow("slow 1");
    void slow("slow 2");
    pass(500);
    expect(queue.expectedSlowWaitMs).toBe(700);
    pass(500);
    expect(queue.expectedSlowWaitMs).toBe(600);
  });

  it("lets unbounded work wait", async () => {
    const { unbounded, begun, queue, end } = createQueue(2);
    const all = Array.from({ length: 20 }, (_, i) => unbounded(`slow ${i}`));
    expect([queue.depth, queue.expectedSlowWaitMs]).toEqual([20, 12_000]);
    for (const [i, work] of all.entries()) {
      end(`slow ${i}`);
      await work;
    }
    expect([begun.length, queue.depth, queue.expectedSlowWaitMs]).toEqual([20, 0, 0]);
  });

  it("frees the thread of work that fails", async () => {
    const { unbounded, begun, fail, queue } = createQueue(2);
    const works = ["slow 1", "slow 2", "slow 3"].map((name) => outcome(unbounded(name)));
    for (const [i, work] of works.entries()) {
      fail(`slow ${i + 1}`);
      expect(await work).toBe(`failed slow ${i + 1}`);
    }
    expect([begun, queue.depth]).toEqual([["slow 1", "slow 2", "slow 3"], 0]);
  });

  it("lets quick work run between two pieces of slow work on a single thread", async () => {
    const { unbounded, quick, begun, queue, pass, end } = createQueue(1);
    const first = unbounded("slow 1");
    void unbounded("slow 2");
    void quick("quick");
    pass(200);
    expect(queue.expectedWaitMs).toBe(401);
    end("slow 1");
    await first;
    expect(begun).toEqual(["slow 1", "quick", "slow 2"]);
  });
});

/** Lets resolved promises start their continuations. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}

describe("WorkQueue with several callers", () => {
  /** Finishes the started work in order, until none is left. */
  async function drain({ begun, end }: Pick<ReturnType<typeof createQueue>, "begun" | "end">): Promise<void> {
    for (let i = 0; i < begun.length; i += 1) {
      end(begun[i] ?? "", 1);
      await settle();
    }
  }

  it("charges each for the cost of its work", async () => {
    const { ask, begun, end } = createQueue(1);
    void ask(20, true)("first", "bob");
    for (const name of ["m1", "m2", "m3"]) void ask(8, true)(name, "mallory");
    for (const name of ["a1", "a2", "a3", "a4", "a5"]) void ask(2, true)(name, "ada");
    await drain({ begun, end });
    expect(begun).toEqual(["first", "m1", "a1", "a2", "a3", "a4", "m2", "a5", "m3"]);
  });

  it("never rejects a caller because of another caller's work", async () => {
    const { ask, queue } = createQueue(2, 5000);
    const batch = ask(600, true);
    const sign = ask(600, false);
    const batches = Array.from({ length: 100 }, (_, i) => outcome(batch(`m${i}`, "mallory")));
    expect(await Promise.race([...batches].reverse())).toBe("busy");
    expect(await outcome(sign("m", "mallory"))).toBe("busy");
    void sign("a", "ada");
    expect(queue.slow.refused).toBe(92);
    expect(queue.slow.callers).toBe(2);
  });

  it("rejects unbounded work of a caller with too much of it", async () => {
    const { unbounded } = createQueue(2, 1500);
    void unbounded("1");
    void unbounded("2");
    void unbounded("3");
    await expect(unbounded("4")).rejects.toMatchObject({ name: "CryptoBusy", retryMs: 1800 });
  });

  it("shortens each caller's allowed backlog as the number of callers grows", async () => {
    const { slow } = createQueue(2);
    void slow("a1", "ada");
    void slow("b1", "bob");
    // A second piece from ada would start after her first and bob's first.
    expect(await outcome(slow("a2", "ada"))).toBe("busy");
    void slow("c1", "carol");
  });

  it("does the server's own work first and never rejects it", async () => {
    const { ask, begun, end } = createQueue(1, 1);
    const sign = ask(20, true);
    void sign("first", "bob");
    for (const name of ["a1", "b1"]) void sign(name, name);
    for (let i = 0; i < 100; i += 1) void sign(`s${i}`, systemCaller);
    await drain({ begun, end });
    expect(begun).toHaveLength(103);
    expect(begun.slice(-2)).toEqual(["a1", "b1"]);
  });
});
