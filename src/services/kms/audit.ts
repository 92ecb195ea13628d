/** Lists and watches the audit log for callers. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { AuditCheckpointSchema, AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import { type AuditEntry, checkpointMessage } from "../../audit/chain.ts";
import { auditListName, listAuditEntries, readEntries, readHead } from "../../audit/log.ts";
import type { SignedCheckpoint } from "../../audit/verification.ts";
import { refuseField } from "../../errors.ts";
import { createFeed, type Feed } from "../../records/feed.ts";
import type { Store } from "../../store/store.ts";
import { type PageFields, readPage } from "../fields.ts";

/** Which entries to list. */
export interface AuditQuery extends PageFields {
  /** Lists only the entries of this key; all if it is empty. */
  readonly keyId: string;
}

/** Lists entries, oldest first. @throws FIELD_INVALID for a page token of another list */
export function listAudit(store: Store, query: AuditQuery) {
  return listAuditEntries(store.reader, readPage(query, auditListName(query.keyId)), query.keyId);
}

/** The approximate size of an entry in memory. */
const entryBytes = 600;

/** The feed of audit entries that all watchers share. */
export function auditFeed(store: Store): Feed<AuditEntry> {
  return createFeed({
    readEnd: async () => (await readHead(store.reader)).sequence,
    read: (after, limit, keyId) => readEntries(store.reader, after, limit, keyId),
    positionOf: ({ sequence }) => sequence,
    topicOf: ({ keyId }) => keyId,
    bytesOf: () => entryBytes,
    onWrite: (listener) => store.onWrite(listener),
  });
}

/**
 * Yields entries as they are written, in order and each once.
 *
 * @param after starts after this entry; after the newest one if it is undefined.
 * @throws FIELD_INVALID if there is no such entry: the caller read it from another log
 */
export async function* watchAudit(
  { store, feed }: { readonly store: Store; readonly feed: Feed<AuditEntry> },
  keyId: string,
  after: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<AuditEntry> {
  const head = await readHead(store.reader);
  const first = after ?? head.sequence;
  if (first > head.sequence)
    throw refuseField("afterSequence", `is beyond the end of the log, which has ${head.sequence} entries`);
  yield* feed.follow({ after: first, topic: keyId, signal });
}

/** An entry as a message. */
export function packEntry(entry: AuditEntry): MessageInitShape<typeof AuditEntrySchema> {
  return { ...entry, timestamp: timestampFromDate(entry.timestamp) };
}

/** A checkpoint as a message, with the key that verifies it. */
export function packCheckpoint(
  store: Store,
  checkpoint: SignedCheckpoint,
): MessageInitShape<typeof AuditCheckpointSchema> {
  const { sequence, entryHash, signedAt, signature } = checkpoint;
  return {
    sequence,
    entryHash,
    signedAt: timestampFromDate(signedAt),
    statement: new TextDecoder().decode(checkpointMessage(checkpoint)),
    signature,
    publicKey: store.checkpointKey.exportRaw(),
    publicKeyPem: store.checkpointKey.toPem(),
  };
}
