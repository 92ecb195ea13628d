import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createGroupCommit } from "../../src/database/group-commit.ts";

/** What a database throws if it fails. */
class DatabaseDown extends Error {}

/** A database of texts, whose commits can be delayed and made to fail. */
function createTexts() {
  let held: Promise<void> | undefined;
  /** The caller of the next writes, and the current time. */
  const turn = { caller: "", nowMs: 0 };
  const texts = {
    /** What each committed transaction wrote. */
    committed: [] as string[][],
    /** Number of calls that each transaction served; 0 while it serves them, and if one fails. */
    begun: [] as number[],
    turn,
    /** Thrown by the next commits, one each. */
    failures: [] as Error[],
    /** Blocks all commits until the returned function is called. */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    group: createGroupCommit<string[]>(
      async (work) => {
        const at = texts.begun.push(0) - 1;
        const written: string[] = [];
        texts.begun[at] = await work(written);
        await held;
        const failure = texts.failures.shift();
        if (failure) throw failure;
        texts.committed.push(written);
      },
      {
        isFailure: (error) => error instanceof DatabaseDown,
        callerOf: () => turn.caller,
        nowMs: () => turn.nowMs,
      },
    ),
    /** Writes a text and returns it in capitals. */
    write: (text: string): Promise<string> =>
      texts.group.run(async (transaction) => {
        transaction.push(text);
        return text.toUpperCase();
      }),
    /** Writes a caller's texts, each of which takes `costMs` milliseconds. */
    writeAs: (caller: string, names: readonly string[], costMs = 0): Promise<string>[] => {
      turn.caller = caller;
      return names.map((text) =>
        texts.group.run(async (transaction) => {
          turn.nowMs += costMs;
          transaction.push(text);
          return text;
        }),
      );
    },
    /** Writes a text, then fails. */
    fail: (text: string): Promise<string> =>
      texts.group.run(async (transaction) => {
        transaction.push(text);
        throw new Error(`not ${text}`);
      }),
  };
  return texts;
}

/** The outcomes of calls: their results, or their error messages. */
async function outcomesOf(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((one) => (one.status === "fulfilled" ? one.value : one.reason.message));
}

describe("group commit", () => {
  it("puts at most 512 calls into one transaction", async () => {
    const texts = createTexts();
    await Promise.all(Array.from({ length: 513 }, (_, i) => texts.write(`${i}`)));
    expect(texts.begun).toEqual([512, 1]);
  });

  it("answers nobody before the commit", async () => {
    const texts = createTexts();
    const release = texts.hold();
    const answered: string[] = [];
    const calls = ["a", "b"].map((text) => texts.write(text).then((answer) => answered.push(answer)));
    await expect.poll(() => texts.begun).toHaveLength(1);
    await new Promise(setImmediate); // Everything that could run has run.
    expect(answered).toEqual([]);
    release();
    await Promise.all(calls);
    expect(answered).toEqual(["A", "B"]);
  });

  it("retries the only failing call of 512 alone, and the others in two transactions", async () => {
    const texts = createTexts();
    const calls = Array.from({ length: 512 }, (_, i) => (i === 300 ? texts.fail("x") : texts.write(`${i}`)));
    const outcomes = await outcomesOf(calls);
    expect(outcomes.filter((outcome) => outcome === "not x")).toHaveLength(1);
    expect(texts.committed.map(({ length }) => length)).toEqual([300, 211]);
    expect(texts.begun).toEqual([0, 300, 0, 211]);
  });

  it("splits the group in halves if a commit fails for a reason other than the database", async () => {
    const texts = createTexts();
    texts.failures.push(new Error("a constraint that is checked at the end"));
    expect(await outcomesOf([texts.write("a"), texts.write("b")])).toEqual(["A", "B"]);
    expect(texts.committed).toEqual([["a"], ["b"]]);
  });

  it("reports a database failure to the whole group, once, without a retry, and continues", async () => {
    const texts = createTexts();
    texts.failures.push(new DatabaseDown("down"));
    expect(await outcomesOf([texts.write("a"), texts.write("b")])).toEqual(["down", "down"]);
    expect(texts.begun).toEqual([2]);
    expect(await texts.write("c")).toBe("C");
    expect(texts.committed).toEqual([["c"]]);
  });

  it("serves a caller that calls again at once, or some promises later, and does not delay it", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const texts = createTexts();
    for (let depth = 0; depth <= 5; depth += 1) await through(depth, () => texts.write(`${depth}`));
    expect(texts.committed).toHaveLength(6);
  });
});

/** Calls a function through `depth` async functions. */
async function through<T>(depth: number, call: () => Promise<T>): Promise<T> {
  return depth === 0 ? call() : await through(depth - 1, call);
}

describe("a batch", () => {
  it("serves concurrent calls with one run of its work, in a transaction with other batches and calls", async () => {
    const { group, committed, begun, write } = createTexts();
    const batchAs = (name: string) =>
      group.batch(async (transaction, inputs: readonly string[]) => {
        transaction.push(`${name}: ${inputs}`);
        return inputs;
      });
    const [small, large] = [batchAs("small"), batchAs("large")];
    const calls = [small("a"), large("A"), small("b"), write("x"), large("B")];
    expect(await Promise.all(calls)).toEqual(["a", "A", "b", "X", "B"]);
    expect([begun, committed]).toEqual([[5], [["x", "small: a,b", "large: A,B"]]]);
  });

  it("isolates a failing input: the others are then served one by one", async () => {
    const { group } = createTexts();
    const divide = group.batch(async (_transaction, inputs: readonly number[]) =>
      inputs.map((input) => {
        if (input === 0) throw new Error("divided by 0");
        return 12 / input;
      }),
    );
    expect(await outcomesOf([3, 0, 4].map(divide))).toEqual([4, "divided by 0", 3]);
  });
});

describe("turns between callers", () => {
  const names = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}${i + 1}`);

  it("put one caller's write into the next transaction, after one write from each other caller", async () => {
    const texts = createTexts();
    const release = texts.hold();
    const running = texts.writeAs("mallory", ["m0"]);
    await expect.poll(() => texts.begun).toHaveLength(1);
    const backlog = texts.writeAs("mallory", names("m", 2000), 3);
    const victim = texts.writeAs("victim", ["v"]);
    release();
    await Promise.all([...running, ...backlog, ...victim]);
    expect(texts.committed[0]).toEqual(["m0"]);
    expect(texts.committed[1]?.slice(0, 2)).toEqual(["m1", "v"]);
  });

  it("end a transaction of several callers after 20 ms, and continue in the next one", async () => {
    const texts = createTexts();
    await Promise.all([
      ...texts.writeAs("mallory", names("m", 12), 4),
      ...texts.writeAs("victim", names("v", 2), 4),
    ]);
    expect(texts.committed).toEqual([["m1", "v1", "m2", "v2", "m3"], names("m", 12).slice(3)]);
  });

  it("end a transaction of one caller after 100 ms", async () => {
    const texts = createTexts();
    await Promise.all(texts.writeAs("mallory", names("m", 70), 4));
    expect(texts.begun).toEqual([25, 25, 20]);
  });

  it("let a write that arrives during another caller's transaction join and end it", async () => {
    const texts = createTexts();
    const reached = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    texts.turn.caller = "mallory";
    const first = texts.group.run(async (transaction) => {
      transaction.push("m0");
      texts.turn.nowMs += 50;
      reached.resolve();
      await held.promise;
    });
    const backlog = texts.writeAs("mallory", names("m", 100), 4);
    await reached.promise;
    const victim = texts.writeAs("victim", ["v"]);
    held.resolve();
    await Promise.all([first, ...backlog, ...victim]);
    expect(texts.committed[0]).toEqual(["m0", "v"]);
  });

  it("serve at most 64 inputs of a batch between two checks of the clock", async () => {
    const texts = createTexts();
    const sizes: number[] = [];
    const write = texts.group.batch(async (_transaction, inputs: readonly number[]) => {
      sizes.push(inputs.length);
      texts.turn.nowMs += 60;
      return inputs;
    });
    expect(await Promise.all(Array.from({ length: 200 }, (_, i) => write(i)))).toHaveLength(200);
    expect(sizes).toEqual([64, 64, 64, 8]);
    expect(texts.begun).toEqual([128, 72]);
  });

  it("make a write wait for at most one failure of another caller", async () => {
    const texts = createTexts();
    texts.turn.caller = "mallory";
    const failing = outcomesOf(names("m", 50).map(texts.fail));
    const [victim] = texts.writeAs("victim", ["v"]);
    expect(await victim).toBe("v");
    expect(texts.begun.length).toBeLessThanOrEqual(3);
    expect(await failing).toEqual(names("m", 50).map((name) => `not ${name}`));
    expect(texts.committed).toEqual([["v"]]);
  });

  it("notify all waiting callers if a transaction cannot begin", async () => {
    let attempts = 0;
    const group = createGroupCommit(
      async () => {
        attempts += 1;
        throw new DatabaseDown("down");
      },
      { isFailure: (error) => error instanceof DatabaseDown, callerOf: () => "" },
    );
    const calls = names("m", 600).map((name) => group.run(async () => name));
    expect(new Set(await outcomesOf(calls))).toEqual(new Set(["down"]));
    expect(attempts).toBe(1);
  });
});

it("draining waits for all submitted work, including work that is submitted meanwhile or fails", async () => {
  const texts = createTexts();
  const release = texts.hold();
  const first = texts.write("a");
  await expect.poll(() => texts.begun).toHaveLength(1);
  let isDrained = false;
  const drained = texts.group.drain().then(() => {
    isDrained = true;
  });
  // These arrive during a transaction, and share the next one.
  const others = outcomesOf([texts.write("b"), texts.write("c"), texts.fail("d")]);
  await new Promise(setImmediate); // Everything that could run has run.
  expect(isDrained).toBe(false);
  release();
  await drained;
  expect(texts.committed).toEqual([["a"], ["b", "c"]]);
  expect([await first, ...(await others)]).toEqual(["A", "B", "C", "not d"]);
});
