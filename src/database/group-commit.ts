/**
 * Group commit: concurrent writes go into one transaction and share its wait for the disk. No call returns before the
 * transaction is on the disk.
 *
 * Callers take turns, one write each, and a transaction takes no more writes after some milliseconds. So the write of a
 * caller who has few waits for little of what another caller has many of.
 */
import { FairQueue } from "../crypto/fair-queue.ts";

/**
 * Runs work in its own transaction: commits it when the work is done, rolls it back if the work fails. The work returns
 * the number of calls that it served.
 */
export type Transact<Transaction> = (work: (transaction: Transaction) => Promise<number>) => Promise<void>;

/** Work for several callers at once: one result for each input, in the same order. */
export type BatchWork<Transaction, Input, Output> = (
  transaction: Transaction,
  inputs: readonly Input[],
) => Promise<readonly Output[]>;

/** Gathers writes. */
export interface GroupCommit<Transaction> {
  /**
   * Runs work in a shared transaction. If another call in the group fails, the transaction is rolled back, and the
   * others run again without it. So the work may run several times.
   */
  run<Output>(work: (transaction: Transaction) => Promise<Output>): Promise<Output>;
  /** Creates a function that serves concurrent calls with one run of the work. */
  batch<Input, Output>(work: BatchWork<Transaction, Input, Output>): (input: Input) => Promise<Output>;
  /** Resolves when all submitted work is done. */
  drain(): Promise<void>;
}

/** How writes are grouped. */
export interface GroupCommitOptions {
  /** Distinguishes errors of the database, which affect a whole group, from errors of one call. */
  readonly isFailure: (error: unknown) => boolean;
  /** Names the caller of the current write. */
  readonly callerOf: () => string;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
}

/** The most calls in one transaction. */
const maxGroup = 512;
/** The most calls that one run of a batch serves. A transaction cannot end within a run. */
const maxRun = 64;
/** Milliseconds after which a transaction of several callers takes no more calls: the others wait for each of them. */
const sharedMs = 20;
/**
 * The same for a transaction of one caller. Only a caller who comes while it runs waits for it, and a longer transaction
 * waits less often for the disk.
 */
const aloneMs = 100;
/**
 * Milliseconds to wait for more calls if the last group had several: a transaction costs about as much as ten entries
 * in it. A single caller does not wait.
 */
const gatherMs = 3;

/** A waiting call. */
interface Waiting {
  /** Inputs with the same work are served together. */
  readonly work: BatchWork<never, never, unknown>;
  /** Whether other calls may have the same work. */
  readonly isBatch: boolean;
  readonly input: unknown;
  readonly caller: string;
  resolve(output: unknown): void;
  reject(error: unknown): void;
}

/** The calls of one transaction. */
interface Group {
  readonly calls: Waiting[];
  /** The calls that its transaction is serving; none while it begins or commits. */
  serving: readonly Waiting[];
}

/** @param transact runs one transaction after another. */
export function createGroupCommit<Transaction>(
  transact: Transact<Transaction>,
  { isFailure, callerOf, nowMs = () => performance.now() }: GroupCommitOptions,
): GroupCommit<Transaction> {
  const queue = new FairQueue<Waiting>();
  let running: Promise<void> | undefined;
  let lastSize = 1;

  const submit = (call: Pick<Waiting, "work" | "isBatch" | "input">): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const caller = callerOf();
      queue.push({ ...call, caller, resolve, reject }, { caller, costMs: 1 });
      running ??= commitAll();
    });

  const commitAll = async (): Promise<void> => {
    try {
      // Calls made in the same turn of the event loop join this group.
      await Promise.resolve();
      while (queue.size > 0) {
        if (lastSize > 1 && queue.size < maxGroup)
          await new Promise((resolve) => setTimeout(resolve, gatherMs));
        const group: Group = { calls: [], serving: [] };
        await commit(group, true);
        lastSize = group.calls.length;
      }
    } finally {
      // Reset in the same turn as the last check of the queue, so the next call starts a new run.
      running = undefined;
    }
  };

  const commit = async (group: Group, mayGrow: boolean): Promise<void> => {
    const { calls } = group;
    try {
      const answers = await attempt(group, mayGrow);
      for (const answer of answers) answer();
    } catch (error) {
      // If the transaction did not begin, it fails for all who wait.
      if (calls.length === 0) for (let next = queue.pop(); next; next = queue.pop()) calls.push(next);
      else if (calls.length > 1 && !isFailure(error)) {
        for (const part of split(group)) await commit({ calls: part, serving: [] }, false);
        return;
      }
      for (const { reject } of calls) reject(error);
    }
  };

  /** Runs a group in one transaction. @returns functions that answer the callers */
  const attempt = async (group: Group, mayGrow: boolean): Promise<(() => void)[]> => {
    let answers: (() => void)[] = [];
    await transact(async (transaction) => {
      answers = [];
      const serve = async (members: readonly Waiting[]): Promise<void> => {
        group.serving = members;
        const work = members[0]?.work as BatchWork<Transaction, unknown, unknown>;
        const outputs = await work(
          transaction,
          members.map(({ input }) => input),
        );
        group.serving = [];
        members.forEach(({ resolve }, i) => {
          answers.push(() => resolve(outputs[i]));
        });
      };
      let inputs: Waiting[] = [];
      const serveInputs = async (): Promise<void> => {
        for (const members of byWork(inputs)) await serve(members);
        inputs = [];
      };
      for (const waiting of takeTurns(group, mayGrow)) {
        if (!waiting.isBatch) await serve([waiting]);
        else if (inputs.push(waiting) === maxRun) await serveInputs();
      }
      await serveInputs();
      return group.calls.length;
    });
    return answers;
  };

  /** Yields the calls of a group, and then those that join it while there is time. */
  function* takeTurns({ calls }: Group, mayGrow: boolean): Generator<Waiting> {
    const startedMs = nowMs();
    const callers = new Set(calls.map(({ caller }) => caller));
    yield* calls;
    // Later calls may take the place of others in this transaction. They do not prolong it.
    const room = mayGrow ? Math.min(maxGroup, calls.length + queue.size) : 0;
    while (calls.length < room && nowMs() - startedMs < (callers.size > 1 ? sharedMs : aloneMs)) {
      const next = queue.pop();
      if (next === undefined) return;
      calls.push(next);
      callers.add(next.caller);
      yield next;
    }
  }

  return {
    run: (work) => {
      const once: BatchWork<Transaction, undefined, unknown> = async (transaction) => [
        await work(transaction),
      ];
      // This work has one caller, so its one output is that caller's.
      return submit({ work: once, isBatch: false, input: undefined }) as ReturnType<typeof work>;
    },
    batch: (work) => (input) =>
      submit({ work, isBatch: true, input }) as Promise<Awaited<ReturnType<typeof work>>[number]>,
    drain: async () => {
      while (running) await running;
    },
  };
}

/**
 * Splits a group whose transaction failed. Calls that failed while they were served run again without the others: those
 * may be the reason. Otherwise halving finds the one that fails in a few transactions.
 */
function split({ calls, serving }: Group): Waiting[][] {
  const failing = new Set(serving);
  const others = calls.filter((call) => !failing.has(call));
  if (failing.size > 0 && others.length > 0) return [others, [...failing]];
  const half = Math.ceil(calls.length / 2);
  return [calls.slice(0, half), calls.slice(half)];
}

/** Groups calls by their work, in the order in which each work first appears. */
function byWork(group: readonly Waiting[]): Waiting[][] {
  const members = new Map<Waiting["work"], Waiting[]>();
  for (const waiting of group) {
    const others = members.get(waiting.work);
    if (others) others.push(waiting);
    else members.set(waiting.work, [waiting]);
  }
  return [...members.values()];
}
