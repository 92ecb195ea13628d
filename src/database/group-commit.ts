/**
 * Group commit: concurrent writes go into one transaction and share its wait for the disk. No call returns before the
 * transaction is on the disk.
 */

/**
 * Runs work in its own transaction: commits it when the work is done, rolls it back if the work fails.
 *
 * @param calls the number of calls that the work serves
 */
export type Transact<Transaction> = (
  work: (transaction: Transaction) => Promise<void>,
  calls: number,
) => Promise<void>;

/** Work for several callers at once: one result for each input, in the same order. */
export type BatchWork<Transaction, Input, Output> = (
  transaction: Transaction,
  inputs: readonly Input[],
) => Promise<readonly Output[]>;

/** Gathers writes. */
export interface GroupCommit<Transaction> {
  /**
   * Runs work in a shared transaction. If another call in the group fails, the transaction is rolled back and each
   * half of the group runs alone. So the work may run several times.
   */
  run<Output>(work: (transaction: Transaction) => Promise<Output>): Promise<Output>;
  /** Creates a function that serves concurrent calls with one run of the work. */
  batch<Input, Output>(work: BatchWork<Transaction, Input, Output>): (input: Input) => Promise<Output>;
  /** Resolves when all submitted work is done. */
  drain(): Promise<void>;
}

/** The most calls in one transaction. */
const maxGroup = 512;
/**
 * Milliseconds to wait for more calls if the last group had several: a transaction costs about as much as ten entries
 * in it. A single caller does not wait.
 */
const gatherMs = 3;

/** A waiting call. */
interface Waiting {
  /** Inputs with the same work are served together. */
  readonly work: BatchWork<never, never, unknown>;
  readonly input: unknown;
  resolve(output: unknown): void;
  reject(error: unknown): void;
}

/**
 * @param transact runs one transaction after another.
 * @param isFailure distinguishes errors of the database, which affect a whole group, from errors of one call.
 */
export function createGroupCommit<Transaction>(
  transact: Transact<Transaction>,
  isFailure: (error: unknown) => boolean,
): GroupCommit<Transaction> {
  let queue: Waiting[] = [];
  let running: Promise<void> | undefined;
  let lastSize = 1;

  const submit = (work: Waiting["work"], input: unknown): Promise<unknown> =>
    new Promise((resolve, reject) => {
      queue.push({ work, input, resolve, reject });
      running ??= commitAll();
    });

  const commitAll = async (): Promise<void> => {
    try {
      // Calls made in the same turn of the event loop join this group.
      await Promise.resolve();
      while (queue.length > 0) {
        if (lastSize > 1 && queue.length < maxGroup)
          await new Promise((resolve) => setTimeout(resolve, gatherMs));
        const group = queue.slice(0, maxGroup);
        queue = queue.slice(maxGroup);
        lastSize = group.length;
        await commit(group);
      }
    } finally {
      // Reset in the same turn as the last check of the queue, so the next call starts a new run.
      running = undefined;
    }
  };

  const commit = async (group: readonly Waiting[]): Promise<void> => {
    try {
      const answers = await attempt(group);
      for (const answer of answers) answer();
    } catch (error) {
      if (group.length === 1 || isFailure(error)) {
        for (const { reject } of group) reject(error);
        return;
      }
      // One call fails. Halving finds it in a few transactions; one transaction per call would take hundreds.
      const half = Math.ceil(group.length / 2);
      await commit(group.slice(0, half));
      await commit(group.slice(half));
    }
  };

  /** Runs a group in one transaction. @returns functions that answer the callers */
  const attempt = async (group: readonly Waiting[]): Promise<(() => void)[]> => {
    let answers: (() => void)[] = [];
    await transact(async (transaction) => {
      answers = [];
      for (const members of byWork(group)) {
        const work = members[0]?.work as BatchWork<Transaction, unknown, unknown>;
        const outputs = await work(
          transaction,
          members.map(({ input }) => input),
        );
        members.forEach(({ resolve }, i) => {
          answers.push(() => resolve(outputs[i]));
        });
      }
    }, group.length);
    return answers;
  };

  return {
    run: (work) => {
      const once: BatchWork<Transaction, undefined, unknown> = async (transaction) => [
        await work(transaction),
      ];
      // This work has one caller, so its one output is that caller's.
      return submit(once, undefined) as ReturnType<typeof work>;
    },
    batch: (work) => (input) => submit(work, input) as Promise<Awaited<ReturnType<typeof work>>[number]>,
    drain: async () => {
      while (running) await running;
    },
  };
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
