import { refuse } from "../../src/errors.ts";
import type { Store } from "../../src/store/store.ts";
import type { PublishedCheckpoint } from "./checkpoint-store.ts";
import type { ServedLog } from "./logs.ts";
import { formatNote } from "./note.ts";

/** Maximum checkpoints to search for enough cosignatures; former witnesses' rows do not count. */
const maxTried = 8;

/**
 * Finds the newest checkpoint with cosignatures from this many witnesses.
 *
 * @throws CHECKPOINT_NOT_FOUND
 */
export async function findCheckpoint(log: ServedLog, witnesses: number): Promise<PublishedCheckpoint> {
  if (witnesses === 0) return log.readCheckpoint();
  for (const size of await log.cosignatures.listCosignedSizes(witnesses, maxTried)) {
    // A witness may have several keys.
    const names = new Set((await log.cosignatures.list(size)).map(({ keyName }) => keyName));
    const checkpoint = names.size >= witnesses ? await log.checkpoints.find(size) : undefined;
    if (checkpoint?.origin === log.origin) return checkpoint;
  }
  throw refuse(
    "CHECKPOINT_NOT_FOUND",
    `no checkpoint of the log ${log.name} has cosignatures from ${witnesses} witnesses`,
    { log: log.name },
  );
}

/**
 * Finds the checkpoint of a given size under the current origin.
 *
 * @throws CHECKPOINT_NOT_FOUND
 */
export async function findBySize(
  log: ServedLog,
  size: number,
  db?: Store["reader"],
): Promise<PublishedCheckpoint> {
  const checkpoint = await log.checkpoints.find(size, db);
  if (checkpoint?.origin === log.origin) return checkpoint;
  throw refuse(
    "CHECKPOINT_NOT_FOUND",
    `the log ${log.name} has no checkpoint of size ${size}; it may have been replaced by a newer one`,
    { log: log.name },
  );
}

/** Formats a checkpoint with its cosignatures as a signed note. */
export async function writeNote(log: ServedLog, { note, size }: PublishedCheckpoint): Promise<string> {
  const cosignatures = await log.cosignatures.list(size);
  return formatNote({ ...note, signatures: [...note.signatures, ...cosignatures] });
}
