/** Lets Kysely use the SQLite that Node brings (node:sqlite). */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { type SqliteDatabase, SqliteDialect, type SqliteStatement } from "kysely";

/**
 * Opens a file as a Kysely dialect. A commit is on the disk when it returns: write-ahead log, and a sync of
 * it at every commit (https://sqlite.org/pragma.html#pragma_synchronous).
 */
export function openSqlite(path: string): SqliteDialect {
  const database = new DatabaseSync(path, { timeout: 5000 });
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
  return new SqliteDialect({ database: adapt(database) });
}

/** Kysely was made for better-sqlite3, which takes parameters as one array and tells readers from writers. */
function adapt(database: DatabaseSync): SqliteDatabase {
  return {
    close: () => database.close(),
    prepare: (sql): SqliteStatement => {
      const statement = database.prepare(sql);
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
