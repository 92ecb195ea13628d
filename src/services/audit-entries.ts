/** The parts that callers see alike of the logs of keys and of identities. */
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type AuditEntry, checkpointMessage } from "../audit/chain.ts";
import { type AuditFilter, matchesFilter, readHead } from "../audit/log.ts";
import type { LogTables } from "../audit/tables.ts";
import type { SignedCheckpoint } from "../audit/verification.ts";
import { refuseField } from "../errors.ts";
import type { Feed } from "../records/feed.ts";
import type { Store } from "../store/store.ts";

/** The approximate size of an entry in memory. */
export const entryBytes = 700;

/** A log, and the feed that all its watchers share. */
export interface WatchedLog {
  readonly store: Store;
  readonly feed: Feed<AuditEntry>;
  readonly log: LogTables;
}

/** Which entries a watcher wants. */
export interface EntryWatch {
  readonly filter: AuditFilter;
  /** The topic of the feed that leaves out the most entries which the filter leaves out; "" for none. */
  readonly topic: string;
  /** Starts after this entry; after the newest one if it is undefined. */
  readonly after: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Yields entries as they are written, in order and each once.
 *
 * @throws FIELD_INVALID if there is no entry `after`: the caller read it from another log
 */
export async function* watchEntries(
  { store, feed, log }: WatchedLog,
  { filter, topic, after, signal }: EntryWatch,
): AsyncGenerator<AuditEntry> {
  const head = await readHead(store.reader, log);
  const first = after ?? head.sequence;
  if (first > head.sequence)
    throw refuseField("afterSequence", `is beyond the end of the log, which has ${head.sequence} entries`);
  for await (const entry of feed.follow({ after: first, topic, signal }))
    if (matchesFilter(entry, filter)) yield entry;
}

/** The fields of a checkpoint's message, with the key that verifies it. */
export function packCheckpoint(store: Store, checkpoint: SignedCheckpoint, { purpose }: LogTables) {
  const { sequence, entryHash, signedAt, signature } = checkpoint;
  return {
    sequence,
    entryHash,
    signedAt: timestampFromDate(signedAt),
    statement: new TextDecoder().decode(checkpointMessage(checkpoint, purpose)),
    signature,
    publicKey: store.checkpointKey.exportRaw(),
    publicKeyPem: store.checkpointKey.toPem(),
  };
}
