/** Recomputes the audit log's chain from its entries. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { sha256 } from "./algorithms.ts";
import { toHex, toUtf8 } from "./values.ts";

/** An entry, and what the browser found when it recomputed the hash. */
export interface CheckedEntry {
  readonly entry: AuditEntry;
  /** "anchor" for an entry whose predecessor is not known here; its hash is not checked. */
  readonly link: "anchor" | "holds" | "broken";
}

/** The previous hash of the first entry of a log. */
const beginning = "0".repeat(64);

/** Checks that an entry follows the previous one. */
export async function checkEntry(entry: AuditEntry, before: CheckedEntry | undefined): Promise<CheckedEntry> {
  const isFirst = entry.sequence === 1;
  if (before === undefined && !isFirst) return { entry, link: "anchor" };
  const isNext = entry.sequence === (before?.entry.sequence ?? 0) + 1;
  const computed = await hashEntry(entry, before?.entry.entryHash ?? beginning);
  return { entry, link: isNext && computed === entry.entryHash ? "holds" : "broken" };
}

/**
 * Hashes an entry as kms/audit.proto defines. The members are in the order of RFC 8785, which formats strings and whole
 * numbers like JSON.stringify.
 */
async function hashEntry(entry: AuditEntry, previousHash: string): Promise<string> {
  const { clientAddress, details, keyId, operation, outcome, requestId, sequence, user } = entry;
  const timestamp = entry.timestamp ? timestampDate(entry.timestamp).toISOString() : "";
  const canonical = JSON.stringify({
    clientAddress: clientAddress || undefined,
    details,
    keyId,
    operation,
    outcome,
    previousHash,
    requestId: requestId || undefined,
    sequence,
    timestamp,
    user,
  });
  return toHex(await sha256(toUtf8(canonical)));
}
