/** Lets Kysely use the SQLite that Node brings (node:sqlite). */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { SqliteAdapter, type SqliteDatabase, SqliteDialect, type SqliteStatement } from "kysely";

/**
 * Opens a file as a Kysely dialect. A commit is on the disk when it returns: write-ahead log, and a sync of
 * it at every commit (https://sqlite.org/pragma.html#pragma_synchronous).
 */
export async function openSqlite(path: string): Promise<SqliteDialect> {
  const database = new DatabaseSync(path, { timeout: busyMs });
  await enterWriteAheadLog(database);
  database.exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
  return new TransactionalSqliteDialect({ database: adapt(database) });
}

/** SQLite undoes changes of the schema with their transaction, as it does all others; Kysely does not count on it. */
class TransactionalSqliteDialect extends SqliteDialect {
  override createAdapter(): SqliteAdapter {
    return new (class extends SqliteAdapter {
      override get supportsTransactionalDdl(): boolean {
        return true;
      }
    })();
  }
}

/** Milliseconds to wait for another program that writes. */
const busyMs = 5000;
/** SQLITE_BUSY (https://sqlite.org/rescode.html#busy). */
const busyCode = 5;

/** The change of the journal does not wait for its turn as everything else does, so it is tried again. */
async function enterWriteAheadLog(database: DatabaseSync): Promise<void> {
  const endMs = performance.now() + busyMs;
  for (;;) {
    try {
      database.exec("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      const isBusy = error instanceof Error && "errcode" in error && error.errcode === busyCode;
      if (!isBusy || performance.now() > endMs) throw error;
      await setTimeout(20);
    }
  }
}

/** Kysely was made for better-sqlite3, which takes parameters as one array and tells readers from writers. */
function adapt(database: DatabaseSync): SqliteDatabase {
  return {
    close: () => database.close(),
    prepare: (sql): SqliteStatement => {
      // A transaction that reads before it writes could not go on where another wrote in between: each waits for
      // its turn before it begins.
      const statement = database.prepare(sql === "begin" ? "begin immediate" : sql);
      const spread = (parameters: readonly unknown[]) => parameters as readonly SQLInputValue[];
      return {
        reader: statement.columns().length > 0,
        all: (parameters) => statement.all(...spread(parameters)),
        run: (parameters) => statement.run(...spread(parameters)),
        iterate: (parameters) => statement.iterate(...spread(parameters)),
      };
    },
  };
}
