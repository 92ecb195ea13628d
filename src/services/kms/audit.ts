/** The audit log as its readers see it. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { AuditCheckpointSchema, AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import { refuseField } from "../../errors.ts";
import { type PageFields, readPage } from "../../fields.ts";
import { type AuditEntry, checkpointMessage } from "../../storage/audit-chain.ts";
import { auditListName, listAuditEntries, readEntries, readHead } from "../../storage/audit-log.ts";
import type { SignedCheckpoint } from "../../storage/audit-verification.ts";
import { follow } from "../../storage/follow.ts";
import type { Store } from "../../storage/store.ts";

/** Which entries to list. */
export interface AuditQuery extends PageFields {
  /** Only those of this key; all if it is empty. */
  readonly keyId: string;
}

/** Lists entries, oldest first. @throws FIELD_INVALID for a page token of another list */
export function listAudit(store: Store, query: AuditQuery) {
  return listAuditEntries(store.reader, readPage(query, auditListName(query.keyId)), query.keyId);
}

/**
 * Gives entries as they come, in their order and each once.
 *
 * @param after begins after this entry; with the newest if it is undefined.
 * @throws FIELD_INVALID if there is no such entry: whoever saw it saw another log
 */
export async function* watchAudit(
  store: Store,
  keyId: string,
  after: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<AuditEntry> {
  const head = await readHead(store.reader);
  const first = after ?? head.sequence;
  if (first > head.sequence)
    throw refuseField("afterSequence", `is beyond the end of the log, which has ${head.sequence} entries`);
  yield* follow({
    after: first,
    read: (last, limit) => readEntries(store.reader, last, limit, keyId),
    positionOf: ({ sequence }) => sequence,
    onWrite: store.onWrite,
    signal,
  });
}

/** An entry as a message. */
export function packEntry(entry: AuditEntry): MessageInitShape<typeof AuditEntrySchema> {
  return { ...entry, timestamp: timestampFromDate(entry.timestamp) };
}

/** A checkpoint as a message, with what verifies it. */
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
