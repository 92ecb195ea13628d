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
}

/** Creates the writers. */
export function createWriters({ transact, reserve, writability }: WritersDeps): Writers {
  const runNext = oneAfterAnother(transact);
  const observed: Transact<WriteTransaction> = async (work, calls) => {
    try {
      await runNext(work, calls);
      writability.wrote();
    } catch (error) {
      if (isFull(error)) await reserve?.release();
      if (error instanceof StoreFailureError) writability.failed();
      throw error;
    }
  };
  const normal: Transact<WriteTransaction> = async (work, calls) => {
    if (reserve?.isReleased)
      throw new StoreFailureError(
        "FULL",
        new Error(
          "less than twice the store reserve is free, 8 MiB on most disks; only safety operations may write",
        ),
      );
    await observed(work, calls);
  };
  const safety: Transact<WriteTransaction> = async (work, calls) => {
    const hadReserve = reserve?.isWhole();
    try {
      await observed(work, calls);
    } catch (error) {
      // Nothing was written. Now there is the room of the reserve.
      if (!isFull(error) || !hadReserve) throw error;
      await observed(work, calls);
    }
  };
  const isFailure = (error: unknown): boolean => error instanceof StoreFailureError;
  return { normal: createGroupCommit(normal, isFailure), safety: createGroupCommit(safety, isFailure) };
}

function isFull(error: unknown): boolean {
  return error instanceof StoreFailureError && error.code === "FULL";
}

/** Runs transactions one after another, since they share a connection. */
function oneAfterAnother<T>(transact: Transact<T>): Transact<T> {
  let last: Promise<void> = Promise.resolve();
  return (work, calls) => {
    const done = last.then(() => transact(work, calls));
    last = done.catch(() => {});
    return done;
  };
}
