/** Recomputes the audit log's hash chain from its entries. */
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { auditStart, verifyAuditEntries } from "../../src/client/verify-audit.ts";

/** An entry and the result of recomputing its hash. */
export interface CheckedEntry {
  readonly entry: AuditEntry;
  /** "anchor" for an entry whose predecessor the caller does not see; its hash is not checked. */
  readonly link: "anchor" | "holds" | "broken";
}

/** @throws Error for a stream message without an entry */
export function readEntry({ entry }: { readonly entry?: AuditEntry | undefined }): AuditEntry {
  if (entry === undefined) throw new Error("the server sent a message without an entry");
  return entry;
}

/**
 * Checks that an entry follows its predecessor.
 *
 * @param before the entry that the server sent before it, of those that the caller may see
 */
export async function checkEntry(entry: AuditEntry, before: CheckedEntry | undefined): Promise<CheckedEntry> {
  const after = before?.entry ?? auditStart;
  if (after.sequence < entry.sequence - 1) return { entry, link: "anchor" };
  const { valid } = await verifyAuditEntries([entry], after);
  return { entry, link: valid ? "holds" : "broken" };
}
