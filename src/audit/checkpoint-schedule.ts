/** Signs the audit log periodically while the store is open. */
import { AsyncResource } from "node:async_hooks";
import type { Kysely } from "kysely";
import { type Background, reportAttempts } from "../database/background.ts";
import type { Schema } from "../database/schema.ts";
import type { AuditHead } from "./chain.ts";
import { type CheckpointSigner, storeCheckpoint } from "./checkpoint-signer.ts";
import type { LogTables } from "./tables.ts";

/** Milliseconds from the first entry without a checkpoint to the next checkpoint. */
const checkpointAfterMs = 1000;

export interface CheckpointScheduleDeps {
  readonly readTrueHead: () => Promise<AuditHead>;
  readonly signer: Pick<CheckpointSigner, "sign">;
  readonly write: (work: (transaction: { readonly db: Kysely<Schema> }) => Promise<void>) => Promise<void>;
  readonly now: () => Date;
  readonly log: LogTables;
  readonly background: Pick<Background, "started" | "failed">;
}

/** Signs a checkpoint shortly after entries are written, and when the store closes. */
export function createCheckpointSchedule({
  readTrueHead,
  signer,
  write,
  now,
  log,
  background,
}: CheckpointScheduleDeps) {
  const attempts = reportAttempts(background, { work: "sign_checkpoint", about: { table: log.entries } });
  let timer: NodeJS.Timeout | undefined;
  let signing: Promise<void> = Promise.resolve();
  const sign = async (): Promise<void> => {
    const head = await readTrueHead();
    if (head.sequence === 0) return;
    const checkpoint = await signer.sign(head, now(), log);
    await write(({ db }) => storeCheckpoint(db, checkpoint, log));
  };
  const attempt = (): Promise<void> => sign().then(attempts.succeeded, attempts.failed);
  // Runs in the store's async context: the signature is neither charged to the call that wrote nor part of
  // its trace.
  const schedule = AsyncResource.bind((): void => {
    timer = setTimeout(() => {
      timer = undefined;
      // If the store is not writable, the next write schedules another checkpoint.
      signing = attempt();
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
      if (wasDue) await attempt();
    },
  };
}
