/** Checks the database file itself, below the level of records. */
import { sql } from "kysely";
import type { Database } from "./database.ts";
import { readMessage, StoreFailureError } from "./store-error.ts";

/** Maximum errors that SQLite reports. */
const maxFaults = 100;

/**
 * Checks the pages, indexes and constraints of a SQLite file
 * (https://sqlite.org/pragma.html#pragma_integrity_check). Record verification reads most tables through an
 * index and never reads free pages, so it misses such damage. PostgreSQL has no such statement; use its page
 * checksums and pg_amcheck.
 *
 * @returns one sentence per problem, without a full stop
 */
export async function checkIntegrity({ kind, reader }: Pick<Database, "kind" | "reader">): Promise<string[]> {
  if (kind !== "sqlite") return [];
  try {
    const { rows } = await sql<{
      integrity_check: string;
    }>`pragma integrity_check(${sql.lit(maxFaults)})`.execute(reader);
    // A row can have several lines, preceded by "*** in database main ***".
    const faults = rows.flatMap((row) => row.integrity_check.split("\n"));
    return faults.filter((fault) => fault !== "ok" && fault !== "" && !fault.startsWith("***"));
  } catch (error) {
    if (!(error instanceof StoreFailureError && error.code === "CORRUPT")) throw error;
    return [readMessage(error.cause)];
  }
}
