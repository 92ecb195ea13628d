/** Reads, copies and forges the audit log directly in the database, bypassing the store. */
import { hash } from "node:crypto";
import canonicalize from "canonicalize";
import type { AuditCheckpointsTable, AuditEntriesTable, AuditHeadTable } from "../../src/audit/tables.ts";
import type { AuditVerification } from "../../src/audit/verification.ts";
import type { Place } from "../support/on-both.ts";

/** All entries as stored in the database, in order. */
export async function readEntryRows({ query }: Place): Promise<AuditEntriesTable[]> {
  return (await query("select * from audit_entries order by sequence")) as never;
}

/** An entry's hash, computed as proto/kms/audit.proto specifies. */
export function hashOfRow(row: AuditEntriesTable, previousHash: string): string {
  const { sequence, operation, outcome, details } = row;
  const members = {
    ...{ sequence, keyId: row.key_id, operation, user: row.user_name, outcome, details, previousHash },
    timestamp: new Date(row.occurred_at_ms).toISOString(),
    ...(row.client_address && { clientAddress: row.client_address }),
    ...(row.request_id && { requestId: row.request_id }),
  };
  return hash("sha256", canonicalize(members) ?? "", "hex");
}

/** A copy of all audit log tables. */
export interface AuditCopy {
  readonly audit_entries: readonly AuditEntriesTable[];
  readonly audit_head: readonly AuditHeadTable[];
  readonly audit_checkpoints: readonly AuditCheckpointsTable[];
}

/** Copies the log, as anyone with read access to the database could. */
export async function copyLog({ query }: Place): Promise<AuditCopy> {
  const read = (table: keyof AuditCopy) => query(`select * from ${table} order by sequence`);
  return {
    audit_entries: (await read("audit_entries")) as never,
    audit_head: (await read("audit_head")) as never,
    audit_checkpoints: (await read("audit_checkpoints")) as never,
  };
}

/** Replaces the current tables with those in a copy. */
export async function restoreLog(place: Place, copy: Partial<AuditCopy>): Promise<void> {
  for (const [table, rows] of Object.entries(copy)) {
    await place.query(`delete from ${table}`);
    await insertRows(place, table, rows);
  }
}

/** Inserts an entry directly into the database. */
export function insertEntry(place: Place, row: AuditEntriesTable): Promise<void> {
  return insertRows(place, "audit_entries", [row]);
}

async function insertRows({ query }: Place, table: string, rows: readonly object[]): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const columns = Object.keys(first);
  const tuples = rows.map((_, i) => `(${columns.map((_, j) => `$${i * columns.length + j + 1}`).join()})`);
  const values = rows.flatMap((row) => Object.values(row));
  await query(`insert into ${table} (${columns.join()}) values ${tuples.join()}`, values);
}

/** The fields of a verification result that programs act on. */
export function verdict({ valid, entries, firstBrokenSequence, checkpoint }: AuditVerification) {
  return { valid, entries, firstBrokenSequence, checkpointAt: checkpoint?.sequence };
}
