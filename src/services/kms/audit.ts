/** The audit log as its readers see it. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { AuditCheckpointSchema, AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import { refuseField } from "../../errors.ts";
import { type AuditEntry, checkpointMessage } from "../../storage/audit-chain.ts";
import { auditListName, listAuditEntries, readEntries, readHead } from "../../storage/audit-log.ts";
import type { SignedCheckpoint } from "../../storage/audit-verification.ts";
import { readPageRequest } from "../../storage/pages.ts";
import type { Store } from "../../storage/store.ts";

/** Which entries to list. */
export interface AuditQuery {
  /** Only those of this key; all if it is empty. */
  readonly keyId: string;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** Lists entries, oldest first. @throws FIELD_INVALID for a page token of another list */
export async function listAudit(store: Store, { keyId, pageSize, pageToken }: AuditQuery) {
  const page = readPageRequest(pageSize, pageToken, auditListName(keyId));
  if (page === undefined)
    throw refuseField("pageToken", "is not one of this list; take the nextPageToken of its page");
  return listAuditEntries(store.reader, page, keyId);
}

/** Entries to read at once for a watcher. */
const watchRows = 500;
/** Milliseconds between looks for entries of other replicas; those of this one are told at once. */
const lookMs = 500;

/**
 * Gives entries as they come, in their order and each once.
 *
 * @param after begins after this entry; with the newest if it is undefined.
 */
export async function* watchAudit(
  store: Store,
  keyId: string,
  after: number | undefined,
  signal: AbortSignal,
): AsyncGenerator<AuditEntry> {
  const bell = createBell();
  const stopListening = store.onAudit(bell.ring);
  try {
    let last = after ?? (await readHead(store.reader)).sequence;
    while (!signal.aborted) {
      const entries = await readEntries(store.reader, last, watchRows, keyId);
      for (const entry of entries) {
        last = entry.sequence;
        yield entry;
      }
      if (entries.length < watchRows) await bell.wait(lookMs, signal);
    }
  } finally {
    stopListening();
  }
}

/** Something to wait for that may have happened already. */
function createBell() {
  let hasRung = false;
  let wake: (() => void) | undefined;
  const ring = (): void => {
    hasRung = true;
    wake?.();
  };
  return {
    ring,
    async wait(limitMs: number, signal: AbortSignal): Promise<void> {
      if (!hasRung && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, limitMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
          signal.addEventListener("abort", wake, { once: true });
        });
        if (wake) signal.removeEventListener("abort", wake);
        wake = undefined;
      }
      hasRung = false;
    },
  };
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
