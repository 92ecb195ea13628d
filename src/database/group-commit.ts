/**
 * Group commit: concurrent writes join one transaction and share its wait for the disk. No call returns
 * before the transaction is on disk.
 *
 * Callers take turns, one write each, and after some milliseconds a transaction accepts no further writes. A
 * caller with few writes therefore hardly waits for a caller with many.
 */
import { FairQueue } from "../crypto/fair-queue.ts";

/**
 * Runs work in its own transaction: commits when the work is done and rolls back if it fails. The work
 * returns the number of calls that it served.
 */
export type Transact<Transaction> = (work: (transaction: Transaction) => Promise<number>) => Promise<void>;

/** Work for several calls at once. It returns one result per input, in the same order. */
export type BatchWork<Transaction, Input, Output> = (
  transaction: Transaction,
  inputs: readonly Input[],
) => Promise<readonly Output[]>;

/** Groups concurrent writes into transactions. */
export interface GroupCommit<Transaction> {
  /**
   * Runs work in a shared transaction. If another call in the group fails, the transaction is rolled back and
   * the remaining calls are retried without it, so the work may run several times.
   */
  run<Output>(work: (transaction: Transaction) => Promise<Output>): Promise<Output>;
  /** Creates a function that serves concurrent calls with a single run of the work. */
  batch<Input, Output>(work: BatchWork<Transaction, Input, Output>): (input: Input) => Promise<Output>;
  /** Resolves when all submitted work is done. */
  drain(): Promise<void>;
}

export interface GroupCommitOptions {
  /** Returns whether an error affects a whole group, as when the disk is full, and not only one call. */
  readonly isFailure: (error: unknown) => boolean;
  /** Returns the caller of the current write. */
  readonly callerOf: () => string;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
}

/** Maximum calls per transaction. */
const maxGroup = 512;
/** Maximum calls per batch run. A transaction cannot end in the middle of a run. */
const maxRun = 64;
/**
 * Milliseconds after which a transaction with several callers accepts no further calls, because they all wait
 * for each other.
 */
const sharedMs = 20;
/**
 * The same limit for a transaction with one caller. Only callers that arrive while it runs have to wait for
 * it, and longer transactions wait for the disk less often.
 */
const aloneMs = 100;
/**
 * Milliseconds to wait for more calls if the last group had several. A transaction costs about as much as ten
 * entries in it. A single caller never waits.
 */
const gatherMs = 3;

interface Waiting {
  /** Inputs with the same work are served together. */
  readonly work: BatchWork<never, never, unknown>;
  /** Whether other calls may share this work. */
  readonly isBatch: boolean;
  readonly input: unknown;
  readonly caller: string;
  resolve(output: unknown): void;
  reject(error: unknown): void;
}

interface Group {
  readonly calls: Waiting[];
  /** The calls currently being served; none while the transaction begins or commits. */
  serving: readonly Waiting[];
}

/** @param transact runs transactions one after another */
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
      // Reset in the same turn as the last check of the queue, so that the next call starts a new run.
      running = undefined;
    }
  };

  const commit = async (group: Group, mayGrow: boolean): Promise<void> => {
    const { calls } = group;
    try {
      const answers = await attempt(group, mayGrow);
      for (const answer of answers) answer();
    } catch (error) {
      // If the transaction did not begin, fail all waiting calls.
      if (calls.length === 0) for (let next = queue.pop(); next; next = queue.pop()) calls.push(next);
      else if (calls.length > 1 && !isFailure(error)) {
        for (const part of split(group)) await commit({ calls: part, serving: [] }, false);
        return;
      }
      for (const { reject } of calls) reject(error);
    }
  };

  /**
   * Runs a group in one transaction.
   *
   * @returns functions that answer the callers
   */
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

  /** Yields the calls of a group, then the calls that join it while there is time. */
  function* takeTurns({ calls }: Group, mayGrow: boolean): Generator<Waiting> {
    const startedMs = nowMs();
    const callers = new Set(calls.map(({ caller }) => caller));
    yield* calls;
    // Later calls may replace earlier ones in this transaction, but do not prolong it.
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
      // Non-batch work has one caller, so its only output belongs to that caller.
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
 * Splits a group whose transaction failed. Calls that failed while being served are retried separately,
 * because they may be the cause. Otherwise, halving the group isolates the failing call in a few
 * transactions.
 */
function split({ calls, serving }: Group): Waiting[][] {
  const failing = new Set(serving);
  const others = calls.filter((call) => !failing.has(call));
  if (failing.size > 0 && others.length > 0) return [others, [...failing]];
  const half = Math.ceil(calls.length / 2);
  return [calls.slice(0, half), calls.slice(half)];
}

/** Groups calls by their work, ordered by first appearance. */
function byWork(group: readonly Waiting[]): Waiting[][] {
  const members = new Map<Waiting["work"], Waiting[]>();
  for (const waiting of group) {
    members.getOrInsert(waiting.work, []).push(waiting);
  }
  return [...members.values()];
}
