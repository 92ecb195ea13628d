/** What Kysely needs of a database, reduced to: run these statements, one after another. */
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";

/** The databases that a store can be kept in. */
export type DatabaseKind = "sqlite" | "postgres";

/** A statement with the values of its placeholders. */
export interface Statement {
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

/** What a statement gave back. */
export interface StatementResult {
  readonly rows: readonly unknown[];
  /** Rows that it inserted, updated or deleted; undefined where it did neither. */
  readonly changedRows?: number | undefined;
}

/** Runs statements in the order of the calls. */
export interface Connection {
  /**
   * Runs statements; the first that fails ends the rest.
   *
   * @throws StoreFailure if the database is at fault, the database's own error if the statement is.
   */
  run(statements: readonly Statement[]): Promise<StatementResult[]>;
  close(): Promise<void>;
}

/** A connection with the one transaction that may write at a time, of all programs that use the database. */
export interface WriteConnection extends Connection {
  /**
   * Begins it, waits for its turn, and runs the first statements of it.
   *
   * @param how begins another kind of transaction with these words (PostgreSQL).
   */
  begin(first: readonly Statement[], how?: string): Promise<StatementResult[]>;
  /** Runs its last statements and ends it; what it wrote is on the disk then. */
  commit(last: readonly Statement[]): Promise<void>;
  /** Undoes it. Never fails: a connection that cannot is given up. */
  rollback(): Promise<void>;
  /**
   * Takes what was deleted out of the database's own log, between transactions.
   *
   * @returns false if others read there now, and it is to be asked again
   */
  scrub(): Promise<boolean>;
}

/** Lets Kysely build and run queries on a connection. */
export function kyselyDialect(kind: DatabaseKind, connection: Connection | WriteConnection): Dialect {
  return {
    createDriver: () => createDriver(connection),
    createAdapter: () => (kind === "sqlite" ? new OurSqliteAdapter() : new PostgresAdapter()),
    createIntrospector: (db) =>
      kind === "sqlite" ? new SqliteIntrospector(db) : new PostgresIntrospector(db),
    createQueryCompiler: () => (kind === "sqlite" ? new SqliteQueryCompiler() : new PostgresQueryCompiler()),
  };
}

/** What Kysely should know of SQLite as we use it. */
class OurSqliteAdapter extends SqliteAdapter {
  /** SQLite undoes changes of the schema with their transaction, as it does all others; Kysely does not count on it. */
  override get supportsTransactionalDdl(): boolean {
    return true;
  }

  /** Our connections take statements in their order; there is nothing to lock. */
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

function createDriver(connection: Connection | WriteConnection): Driver {
  const kyselyConnection: DatabaseConnection = {
    async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
      const [result] = await connection.run([{ sql, parameters }]);
      const changedRows = result?.changedRows;
      // Kysely's types say what the query selects.
      const rows = (result?.rows ?? []) as Row[];
      return changedRows === undefined ? { rows } : { rows, numAffectedRows: BigInt(changedRows) };
    },
    streamQuery() {
      throw new Error("rows are read in pages, not streamed");
    },
  };
  const writing = (): WriteConnection => {
    if ("begin" in connection) return connection;
    throw new Error("this connection is for reading");
  };
  return {
    init: async () => {},
    acquireConnection: async () => kyselyConnection,
    beginTransaction: async () => void (await writing().begin([])),
    commitTransaction: () => writing().commit([]),
    rollbackTransaction: () => writing().rollback(),
    releaseConnection: async () => {},
    destroy: () => connection.close(),
  };
}

/** A statement of our own words. */
export function statement(sql: string, parameters: readonly unknown[] = []): Statement {
  return CompiledQuery.raw(sql, [...parameters]);
}
