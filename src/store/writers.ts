/**
 * Decides who may write when: ordinary writes while the disk has room, safety operations also from the
 * reserve.
 */
import { createGroupCommit, type GroupCommit, type Transact } from "../database/group-commit.ts";
import type { Reserve } from "../database/reserve.ts";
import { StoreFailureError } from "../database/store-error.ts";
import type { Writability } from "./writability.ts";
import type { WriteTransaction } from "./write-transaction.ts";

/**
 * What a write is for. Safety operations revoke rights or destroy secrets, or log in the people who do so.
 * They are few and small, and continue when the disk is full.
 */
export type WritePriority = "normal" | "safety";

export interface WriteOptions {
  /** Default: "normal". */
  readonly priority?: WritePriority;
}

/** The writers of each priority. Writes of one priority share transactions. */
export type Writers = Readonly<Record<WritePriority, GroupCommit<WriteTransaction>>>;

export interface WritersDeps {
  readonly transact: Transact<WriteTransaction>;
  /** Undefined for a database without one. */
  readonly reserve: Reserve | undefined;
  readonly writability: Pick<Writability, "wrote" | "failed">;
  /** Returns the caller of the current write. */
  readonly callerOf: () => string;
}

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
      // Nothing was written, and now the reserve's space is free.
      if (!isFull(error) || !hadReserve) throw error;
      await observed(work);
    }
  };
  const options = { isFailure: concernsAll, callerOf };
  return { normal: createGroupCommit(normal, options), safety: createGroupCommit(safety, options) };
}

/**
 * Returns whether an error concerns all calls of a transaction. Damage or a missing master key may concern
 * only what one call reads.
 */
function concernsAll(error: unknown): boolean {
  return error instanceof StoreFailureError && (error.code === "UNAVAILABLE" || error.code === "FULL");
}

function isFull(error: unknown): boolean {
  return error instanceof StoreFailureError && error.code === "FULL";
}

/** Runs transactions one after another, because they share a connection. */
function oneAfterAnother<T>(transact: Transact<T>): Transact<T> {
  let last: Promise<void> = Promise.resolve();
  return (work) => {
    const done = last.then(() => transact(work));
    last = done.catch(() => {});
    return done;
  };
}
