/** Reads entries and checks that the server wrote them. */
import type { Reader } from "../database/database.ts";
import { RecordDamagedError } from "../database/store-error.ts";
import { type AuditEntry, emptyChain } from "./chain.ts";
import { readEntryRows, toEntry } from "./log.ts";
import { checkRow } from "./walk.ts";

/**
 * Reads entries after a sequence number, oldest first. Each is checked as in a log verification: its hash
 * covers its content and the previous entry's hash, and its tag shows that the server wrote it.
 *
 * @throws RecordDamagedError naming the first entry that was changed or is missing
 */
export async function readTrueEntries(
  db: Reader,
  tagKey: Uint8Array,
  after: number,
  limit: number,
): Promise<AuditEntry[]> {
  // The preceding entry is read for its hash, which the check of the next entry covers.
  const rows = await readEntryRows(db, after - 1, limit + 1, Number.MAX_SAFE_INTEGER);
  const before = after === 0 ? undefined : rows.shift();
  if (after > 0 && before?.sequence !== after) throw damaged(after);
  let previous = before ? { sequence: after, entryHash: before.entry_hash } : emptyChain;
  for (const row of rows) {
    const fault = checkRow(row, previous, tagKey);
    if (fault !== undefined) throw damaged(fault.sequence);
    previous = { sequence: row.sequence, entryHash: row.entry_hash };
  }
  return rows.slice(0, limit).map(toEntry);
}

function damaged(sequence: number): RecordDamagedError {
  return new RecordDamagedError(`audit entry ${sequence}`);
}
