/** Recomputes the audit log's hash chain from its entries. */
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { auditStart, hashAuditEntry } from "../../src/client/verify-audit.ts";

/** An entry and the result of recomputing its hash. */
export interface CheckedEntry {
  readonly entry: AuditEntry;
  /** "anchor" for an entry whose predecessor is unknown here; its hash is not checked. */
  readonly link: "anchor" | "holds" | "broken";
}

/** @throws Error for a stream message without an entry */
export function readEntry({ entry }: { readonly entry?: AuditEntry | undefined }): AuditEntry {
  if (entry === undefined) throw new Error("the server sent a message without an entry");
  return entry;
}

/** Checks that an entry follows its predecessor. */
export async function checkEntry(entry: AuditEntry, before: CheckedEntry | undefined): Promise<CheckedEntry> {
  const isFirst = entry.sequence === 1;
  if (before === undefined && !isFirst) return { entry, link: "anchor" };
  const isNext = entry.sequence === (before?.entry.sequence ?? 0) + 1;
  const computed = await hashAuditEntry(entry, (before?.entry ?? auditStart).entryHash);
  return { entry, link: isNext && computed === entry.entryHash ? "holds" : "broken" };
}
