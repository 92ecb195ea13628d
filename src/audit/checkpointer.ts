/** Signs the audit log from time to time, while the store is open. */
import { AsyncResource } from "node:async_hooks";
import type { Kysely } from "kysely";
import type { Schema } from "../database/schema.ts";
import type { AuditHead } from "./chain.ts";
import { type CheckpointSigner, storeCheckpoint } from "./checkpoints.ts";
import { keyLog, type LogTables } from "./tables.ts";

/** Milliseconds from the first entry that no checkpoint covers to the checkpoint. */
const checkpointAfterMs = 1000;

/** Signs a checkpoint some time after entries are written, and when the store closes. */
export function createCheckpointer(
  readTrueHead: () => Promise<AuditHead>,
  signer: Pick<CheckpointSigner, "sign">,
  write: (work: (transaction: { readonly db: Kysely<Schema> }) => Promise<void>) => Promise<void>,
  now: () => Date,
  log: LogTables = keyLog,
) {
  let timer: NodeJS.Timeout | undefined;
  let signing: Promise<void> = Promise.resolve();
  const sign = async (): Promise<void> => {
    const head = await readTrueHead();
    if (head.sequence === 0) return;
    const checkpoint = await signer.sign(head, now(), log);
    await write(({ db }) => storeCheckpoint(db, checkpoint, log));
  };
  // In the context of the store: the signature is not charged to the call that wrote, and is not in its trace.
  const schedule = AsyncResource.bind((): void => {
    timer = setTimeout(() => {
      timer = undefined;
      // If the store cannot be written now, the next write schedules another checkpoint.
      signing = sign().catch(() => {});
    }, checkpointAfterMs);
    timer.unref();
  });
  return {
    entriesWritten(): void {
      if (timer === undefined) schedule();
    },
    async close(): Promise<void> {
      const wasDue = timer !== undefined;
      clearTimeout(timer);
      await signing;
      if (wasDue) await sign().catch(() => {});
    },
  };
}
