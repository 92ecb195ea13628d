/** Verifies entries and checkpoints of the audit and identity logs without trusting the server that sent them. */
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { AuditCheckpoint, AuditEntry } from "../../gen/kms/audit_pb.ts";
import type { IdentityLogCheckpoint, IdentityLogEntry } from "../../gen/pqc/identity_log_service_pb.ts";
import { checkpointText, emptyChainHash, entryText } from "../audit/entry-text.ts";
import { verifySignature } from "./verify-signature.ts";

/** A position in the log: a sequence number and the hash of its entry. */
export interface AuditPosition {
  /** 0 before the first entry. */
  readonly sequence: number;
  /** 64 lower-case hexadecimal digits. */
  readonly entryHash: string;
}

/** Whether entries are valid, or where they break. */
export type AuditVerdict =
  | { readonly valid: true; readonly head: AuditPosition }
  | { readonly valid: false; readonly firstBrokenSequence: number };

type EntriesOf<Entry> = Iterable<Entry> | AsyncIterable<Entry>;

/** The position before the first entry of a log. */
export const auditStart: AuditPosition = { sequence: 0, entryHash: emptyChainHash };

/**
 * Computes the hash of an entry from its fields, as kms/audit.proto and pqc/identity_log_service.proto define it.
 *
 * @param previousHash the hash of the previous entry
 * @returns undefined for a timestamp that no server writes: missing, out of range, or finer than a millisecond
 */
export async function hashAuditEntry(
  entry: AuditEntry | IdentityLogEntry,
  previousHash: string,
): Promise<string | undefined> {
  const timestamp = readMilliseconds(entry.timestamp);
  if (timestamp === undefined) return undefined;
  const { sha256 } = await import("@noble/hashes/sha2.js");
  const { bytesToHex, utf8ToBytes } = await import("@noble/hashes/utils.js");
  return bytesToHex(sha256(utf8ToBytes(entryText({ ...entry, timestamp }, previousHash))));
}

/**
 * Verifies that entries are unchanged and continue from a trusted position without gaps.
 *
 * An entry that no server could have written makes the log invalid; it does not throw.
 *
 * @param after the trusted position: `auditStart`, the head of an earlier verdict, or a verified checkpoint
 */
export async function verifyAuditEntries(
  entries: EntriesOf<AuditEntry> | EntriesOf<IdentityLogEntry>,
  after: AuditPosition,
): Promise<AuditVerdict> {
  let head = after;
  for await (const entry of entries) {
    const sequence = head.sequence + 1;
    const computed = await hashAuditEntry(entry, head.entryHash);
    if (entry.sequence !== sequence || computed !== entry.entryHash)
      return { valid: false, firstBrokenSequence: sequence };
    head = { sequence, entryHash: computed };
  }
  return { valid: true, head };
}

/**
 * Verifies a checkpoint: its signature, and that its statement matches its fields.
 *
 * @param publicKey the store's ML-DSA-65 key, 1952 bytes, which you stored or compared over another channel. The key
 *   in the checkpoint itself proves nothing: a forger sends a matching key.
 * @returns false for an invalid signature, including one of the wrong length
 * @throws TypeError for a key of the wrong length, or a key or signature that is not a Uint8Array
 */
export async function verifyAuditCheckpoint(
  { $typeName, sequence, entryHash, signedAt, statement, signature }: AuditCheckpoint | IdentityLogCheckpoint,
  publicKey: Uint8Array,
): Promise<boolean> {
  const message = new TextEncoder().encode(statement);
  const isSigned = await verifySignature({ algorithm: "ML-DSA-65", publicKey, message, signature });
  const time = readMilliseconds(signedAt);
  if (!isSigned || time === undefined) return false;
  return statement === checkpointText({ sequence, entryHash, signedAt: time }, purposes[$typeName]);
}

/** One key signs both logs, so each checkpoint states which log it covers. */
const purposes = {
  "kms.AuditCheckpoint": "audit checkpoint",
  "pqc.IdentityLogCheckpoint": "identity audit checkpoint",
} as const;

function readMilliseconds(timestamp: Timestamp | undefined): Date | undefined {
  if (timestamp === undefined || timestamp.nanos % 1_000_000 !== 0) return undefined;
  const date = timestampDate(timestamp);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
