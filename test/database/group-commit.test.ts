import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createGroupCommit } from "../../src/database/group-commit.ts";
import { addRow, readRowNames } from "../support/entries.ts";
import { describeStores, type Place } from "../support/on-both.ts";

/** What a database throws when it is at fault. */
class DatabaseDown extends Error {}

/** A database of texts, whose commits can be held up and made to fail. */
function createTexts() {
  let held: Promise<void> | undefined;
  const texts = {
    /** What each transaction wrote that was committed. */
    committed: [] as string[][],
    /** For how many calls each transaction was begun. */
    begun: [] as number[],
    /** Thrown by the next commits, one each. */
    failures: [] as Error[],
    /** Holds up all commits until the function that it gives is called. */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    group: createGroupCommit<string[]>(
      async (work, calls) => {
        texts.begun.push(calls);
        const written: string[] = [];
        await work(written);
        await held;
        const failure = texts.failures.shift();
        if (failure) throw failure;
        texts.committed.push(written);
      },
      (error) => error instanceof DatabaseDown,
    ),
    /** Writes a text and answers in capitals. */
    write: (text: string): Promise<string> =>
      texts.group.run(async (transaction) => {
        transaction.push(text);
        return text.toUpperCase();
      }),
    /** Writes a text, then changes its mind. */
    fail: (text: string): Promise<string> =>
      texts.group.run(async (transaction) => {
        transaction.push(text);
        throw new Error(`not ${text}`);
      }),
  };
  return texts;
}

/** What became of calls: their answers, or the messages of their errors. */
async function outcomesOf(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((one) => (one.status === "fulfilled" ? one.value : one.reason.message));
}

describe("group commit", () => {
  afterEach(() => vi.useRealTimers());

  it("puts calls of one moment into one transaction, and answers each", async () => {
    const texts = createTexts();
    expect(await Promise.all(["a", "b", "c"].map(texts.write))).toEqual(["A", "B", "C"]);
    expect(texts.committed).toEqual([["a", "b", "c"]]);
    expect(texts.begun).toEqual([3]);
  });

  it("puts calls that come during a transaction together into the next", async () => {
    const texts = createTexts();
    const release = texts.hold();
    const first = texts.write("a");
    await expect.poll(() => texts.begun).toHaveLength(1);
    const others = ["b", "c"].map(texts.write);
    release();
    await Promise.all([first, ...others]);
    expect(texts.committed).toEqual([["a"], ["b", "c"]]);
  });

  it("takes no more than 512 calls into one transaction", async () => {
    const texts = createTexts();
    await Promise.all(Array.from({ length: 513 }, (_, i) => texts.write(`${i}`)));
    expect(texts.begun).toEqual([512, 1]);
  });

  it("lets a caller who is alone wait for nobody", async () => {
    vi.useFakeTimers();
    const texts = createTexts();
    await texts.write("a");
    await texts.write("b");
    expect(texts.committed).toEqual([["a"], ["b"]]);
  });

  it("answers nobody before the commit", async () => {
    const texts = createTexts();
    const release = texts.hold();
    const answered: string[] = [];
    const calls = ["a", "b"].map((text) => texts.write(text).then((answer) => answered.push(answer)));
    await expect.poll(() => texts.begun).toHaveLength(1);
    await new Promise(setImmediate); // All that could run has run.
    expect(answered).toEqual([]);
    release();
    await Promise.all(calls);
    expect(answered).toEqual(["A", "B"]);
  });

  it("lets a call fail without its neighbours, which run again without it", async () => {
    const texts = createTexts();
    expect(await outcomesOf([texts.write("a"), texts.fail("b"), texts.write("c")])).toEqual([
      "A",
      "not b",
      "C",
    ]);
    expect(texts.committed).toEqual([["a"], ["c"]]);
  });

  it("finds the one of 512 calls that fails in 18 transactions more", async () => {
    const texts = createTexts();
    const calls = Array.from({ length: 512 }, (_, i) => (i === 300 ? texts.fail("x") : texts.write(`${i}`)));
    const outcomes = await outcomesOf(calls);
    expect(outcomes.filter((outcome) => outcome === "not x")).toHaveLength(1);
    expect(texts.committed.flat()).toHaveLength(511);
    expect(texts.begun).toHaveLength(1 + 2 * Math.log2(512));
  });

  it("tries in halves when a commit fails that is not the database's fault", async () => {
    const texts = createTexts();
    texts.failures.push(new Error("a constraint that is checked at the end"));
    expect(await outcomesOf([texts.write("a"), texts.write("b")])).toEqual(["A", "B"]);
    expect(texts.committed).toEqual([["a"], ["b"]]);
  });

  it("tells a failure of the database to the whole group, once, and tries nothing again", async () => {
    const texts = createTexts();
    texts.failures.push(new DatabaseDown("down"));
    expect(await outcomesOf([texts.write("a"), texts.write("b")])).toEqual(["down", "down"]);
    expect(texts.begun).toEqual([2]);
    expect(texts.committed).toEqual([]);
  });

  it("goes on after a failure of the database", async () => {
    const texts = createTexts();
    texts.failures.push(new DatabaseDown("down"));
    await outcomesOf([texts.write("a")]);
    expect(await texts.write("b")).toBe("B");
  });

  it.each([0, 1, 2, 3, 4, 5])(
    "serves a caller who asks again at once, %i promises away from it",
    async (depth) => {
      const texts = createTexts();
      for (const text of ["a", "b", "c"]) await through(depth, () => texts.write(text));
      expect(texts.committed).toEqual([["a"], ["b"], ["c"]]);
    },
  );
});

/** Calls something through so many async functions. */
async function through<T>(depth: number, call: () => Promise<T>): Promise<T> {
  return depth === 0 ? call() : await through(depth - 1, call);
}

describe("a batch", () => {
  it("serves calls of one moment by one run of its work, each with an output of its own", async () => {
    const { group } = createTexts();
    const runs: (readonly string[])[] = [];
    const write = group.batch(async (transaction, inputs: readonly string[]) => {
      runs.push(inputs);
      transaction.push(...inputs);
      return inputs.map((text) => text.toUpperCase());
    });
    expect(await Promise.all(["a", "b", "c"].map(write))).toEqual(["A", "B", "C"]);
    expect(runs).toEqual([["a", "b", "c"]]);
  });

  it("shares a transaction with other batches and other calls", async () => {
    const { group, committed, begun, write } = createTexts();
    const small = group.batch(async (transaction, inputs: readonly string[]) => {
      transaction.push(`small: ${inputs}`);
      return inputs;
    });
    const large = group.batch(async (transaction, inputs: readonly string[]) => {
      transaction.push(`large: ${inputs}`);
      return inputs;
    });
    const calls = [small("a"), large("A"), small("b"), write("x"), large("B")];
    expect(await Promise.all(calls)).toEqual(["a", "A", "b", "X", "B"]);
    expect(begun).toEqual([5]);
    expect(committed).toEqual([["small: a,b", "large: A,B", "x"]]);
  });

  it("lets an input fail without the others, each of which is then served alone", async () => {
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

describe("draining", () => {
  it("waits for nothing when nothing was asked for", async () => {
    const { group } = createTexts();
    expect(await group.drain()).toBeUndefined();
  });

  it("waits for all that was asked for, also meanwhile", async () => {
    const texts = createTexts();
    const release = texts.hold();
    const first = texts.write("a");
    await expect.poll(() => texts.begun).toHaveLength(1);
    let isDrained = false;
    const drained = texts.group.drain().then(() => {
      isDrained = true;
    });
    const second = texts.write("b");
    await new Promise(setImmediate); // All that could run has run.
    expect(isDrained).toBe(false);
    release();
    await drained;
    expect(texts.committed).toEqual([["a"], ["b"]]);
    await Promise.all([first, second]);
  });

  it("is done also when what was asked for fails", async () => {
    const texts = createTexts();
    const failing = outcomesOf([texts.fail("a")]);
    await texts.group.drain();
    expect(await failing).toEqual(["not a"]);
  });
});

describeStores("a store that many write to at once", (makePlace) => {
  it("keeps 100 writes of one moment in a few transactions, and all of them over a restart", async () => {
    const place = await makePlace();
    const store = await place.open();
    await startCounting(place);
    const names = Array.from({ length: 100 }, (_, i) => `row ${i}`);
    await Promise.all(names.map((name) => store.write((transaction) => addRow(transaction, name))));
    expect(await countTransactions(place)).toBeLessThanOrEqual(5);
    await store.close();
    expect(await readRowNames(place)).toEqual(names.sort());
    expect(await (await place.open()).verifyAudit()).toMatchObject({ valid: true, entries: 100 });
  });

  it("keeps writes that come one after another in a transaction each", async () => {
    const place = await makePlace();
    const store = await place.open();
    await startCounting(place);
    for (const name of ["a", "b", "c", "d"]) await store.write((transaction) => addRow(transaction, name));
    expect(await countTransactions(place)).toBeGreaterThanOrEqual(4);
  });

  it("tells how many calls shared a transaction, and how long it took", async () => {
    const commits: { durationMs: number; calls: number }[] = [];
    const onCommit = (durationMs: number, calls: number) => void commits.push({ durationMs, calls });
    const store = await (await makePlace()).open({ onCommit });
    await Promise.all(["a", "b", "c"].map((name) => store.write((transaction) => addRow(transaction, name))));
    expect(commits[0]).toEqual({ durationMs: expect.any(Number), calls: 3 });
  });

  it("refuses a write that takes a name twice, alone, and leaves nothing of it", async () => {
    const place = await makePlace();
    const store = await place.open();
    await store.write((transaction) => addRow(transaction, "taken"));
    const writes = ["a", "taken", "b"].map((name) => store.write((transaction) => addRow(transaction, name)));
    const settled = await Promise.allSettled(writes);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await readRowNames(place)).toEqual(["a", "b", "taken"]);
    const details = await place.query("select details from audit_entries order by sequence");
    expect(details).toEqual([{ details: "taken" }, { details: "a" }, { details: "b" }]);
    expect(await store.verifyAudit()).toMatchObject({ valid: true, entries: 3 });
  });
});

async function startCounting({ location, query }: Place): Promise<void> {
  if (location.kind === "sqlite") await query("pragma wal_checkpoint(truncate)");
}

/** Counts the transactions that wrote rows with addRow, as the database tells. */
async function countTransactions({ location, query }: Place): Promise<number> {
  if (location.kind === "sqlite") return countWalCommits(readFileSync(`${location.path}-wal`));
  const [row] = await query("select count(distinct xmin::text) as transactions from list_counts");
  return Number(row?.transactions);
}

/** Counts the frames of a write-ahead log that end a transaction (https://sqlite.org/fileformat2.html#walformat). */
function countWalCommits(wal: Buffer): number {
  const frameBytes = 24 + wal.readUInt32BE(8);
  const salts = wal.subarray(16, 24);
  let commits = 0;
  for (let at = 32; at + frameBytes <= wal.length; at += frameBytes) {
    if (wal.subarray(at + 8, at + 16).equals(salts) && wal.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}
