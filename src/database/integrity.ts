/** Checks the file of a database as a whole, below the records in it. */
import { sql } from "kysely";
import type { Database } from "./database.ts";
import { readMessage, StoreFailureError } from "./store-error.ts";

/** The most faults that SQLite looks for. */
const maxFaults = 100;

/**
 * Checks the pages, the indexes and the constraints of a SQLite file (https://sqlite.org/pragma.html#pragma_integrity_check).
 * The checks of records read most tables through an index, and never read free pages, so they miss such damage. PostgreSQL
 * has no such statement: its checksums of pages and its tool pg_amcheck do this.
 *
 * @returns a sentence without full stop for each fault
 */
export async function checkIntegrity({ kind, reader }: Pick<Database, "kind" | "reader">): Promise<string[]> {
  if (kind !== "sqlite") return [];
  try {
    const { rows } = await sql<{
      integrity_check: string;
    }>`pragma integrity_check(${sql.lit(maxFaults)})`.execute(reader);
    // A row can have several lines, and "*** in database main ***" before them.
    const faults = rows.flatMap((row) => row.integrity_check.split("\n"));
    return faults.filter((fault) => fault !== "ok" && fault !== "" && !fault.startsWith("***"));
  } catch (error) {
    if (!(error instanceof StoreFailureError && error.code === "CORRUPT")) throw error;
    return [readMessage(error.cause)];
  }
}
