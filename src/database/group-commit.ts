/**
 * Group commit: what several calls want to write at one moment goes into one transaction, so that they share its
 * wait for the disk. Nobody is answered before the transaction is on the disk.
 */

/**
 * Runs work in a transaction of its own: commits it when the work is done, undoes it if it fails.
 *
 * @param calls that the work is for
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
   * Runs work within a shared transaction. It may run several times, if a neighbour fails: then the transaction is
   * undone, and each half goes without the other.
   */
  run<Output>(work: (transaction: Transaction) => Promise<Output>): Promise<Output>;
  /** Makes a function whose calls of one moment are served by one run of the work. */
  batch<Input, Output>(work: BatchWork<Transaction, Input, Output>): (input: Input) => Promise<Output>;
  /** When all that was asked for is done. */
  drain(): Promise<void>;
}

/** Most calls in one transaction. */
const maxGroup = 512;
/**
 * Milliseconds to wait for company, where there was some before: a transaction costs about as much as ten entries
 * in it. A caller who is alone does not wait.
 */
const gatherMs = 3;

/** One call that waits. */
interface Waiting {
  /** Inputs with the same work are served together. */
  readonly work: BatchWork<never, never, unknown>;
  readonly input: unknown;
  resolve(output: unknown): void;
  reject(error: unknown): void;
}

/**
 * @param transact runs one transaction after another.
 * @param isFailure tells errors of the database, which hit a whole group, from those of one call.
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
      // Whoever calls in the same turn of the event loop comes along.
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
      // At once after the look at the queue: who asks a moment later begins anew.
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
      // One of them fails. Halves find it in a few transactions, where one for each would be hundreds.
      const half = Math.ceil(group.length / 2);
      await commit(group.slice(0, half));
      await commit(group.slice(half));
    }
  };

  /** Runs a group in one transaction; what it gives back tells the callers. */
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
      // The output of a work of its own is that of its one caller.
      return submit(once, undefined) as ReturnType<typeof work>;
    },
    batch: (work) => (input) => submit(work, input) as Promise<Awaited<ReturnType<typeof work>>[number]>,
    drain: async () => {
      while (running) await running;
    },
  };
}

/** Puts calls with the same work together, in the order in which each work came first. */
function byWork(group: readonly Waiting[]): Waiting[][] {
  const members = new Map<Waiting["work"], Waiting[]>();
  for (const waiting of group) {
    const others = members.get(waiting.work);
    if (others) others.push(waiting);
    else members.set(waiting.work, [waiting]);
  }
  return [...members.values()];
}
