/** Who may write when: ordinary writes while the disk has room, and safety operations also from the reserve. */
import { createGroupCommit, type GroupCommit, type Transact } from "../database/group-commit.ts";
import type { Reserve } from "../database/reserve.ts";
import { StoreFailureError } from "../database/store-error.ts";
import type { Writability } from "./writability.ts";
import type { WriteTransaction } from "./write-transaction.ts";

/**
 * What a write is for. Safety: it takes rights or secrets away, or lets the people in who do so. Such writes are few and
 * small, and go on when the disk is full.
 */
export type WritePriority = "normal" | "safety";

/** How a write is treated. */
export interface WriteOptions {
  /** "normal" if left out. */
  readonly priority?: WritePriority;
}

/** The writes of each priority. Those of one priority share transactions. */
export type Writers = Readonly<Record<WritePriority, GroupCommit<WriteTransaction>>>;

/** The dependencies of writers. */
export interface WritersDeps {
  readonly transact: Transact<WriteTransaction>;
  /** Undefined for a database that keeps none. */
  readonly reserve: Reserve | undefined;
  readonly writability: Pick<Writability, "wrote" | "failed">;
  /** Names the caller of the current write. */
  readonly callerOf: () => string;
}

/** Creates the writers. */
export function createWriters({ transact, reserve, writability, callerOf }: WritersDeps): Writers {
  const runNext = oneAfterAnother(transact);
  const observed: Transact<WriteTransaction> = async (work) => {
    try {
      await runNext(work);
      writability.wrote();
    } catch (error) {
      if (isFull(error)) await reserve?.release();
      if (error instanceof StoreFailureError) writability.failed();
      throw error;
    }
  };
  const normal: Transact<WriteTransaction> = async (work) => {
    if (reserve?.isReleased)
      throw new StoreFailureError(
        "FULL",
        new Error(
          "less than twice the store reserve is free, 8 MiB on most disks; only safety operations may write",
        ),
      );
    await observed(work);
  };
  const safety: Transact<WriteTransaction> = async (work) => {
    const hadReserve = reserve?.isWhole();
    try {
      await observed(work);
    } catch (error) {
      // Nothing was written. Now there is the room of the reserve.
      if (!isFull(error) || !hadReserve) throw error;
      await observed(work);
    }
  };
  const options = { isFailure: (error: unknown) => error instanceof StoreFailureError, callerOf };
  return { normal: createGroupCommit(normal, options), safety: createGroupCommit(safety, options) };
}

function isFull(error: unknown): boolean {
  return error instanceof StoreFailureError && error.code === "FULL";
}

/** Runs transactions one after another, since they share a connection. */
function oneAfterAnother<T>(transact: Transact<T>): Transact<T> {
  let last: Promise<void> = Promise.resolve();
  return (work) => {
    const done = last.then(() => transact(work));
    last = done.catch(() => {});
    return done;
  };
}
