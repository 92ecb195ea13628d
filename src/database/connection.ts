/** Connects Kysely to a database through a minimal interface that runs statements in order. */
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

export type DatabaseKind = "sqlite" | "postgres";

export interface Statement {
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

export interface StatementResult {
  readonly rows: readonly unknown[];
  /** Rows inserted, updated or deleted; undefined for other statements. */
  readonly changedRows?: number | undefined;
}

/** Runs statements in call order. */
export interface Connection {
  /**
   * Runs statements in order and stops at the first one that fails.
   *
   * @throws StoreFailureError if the database fails; the database's own error if a statement is wrong
   */
  run(statements: readonly Statement[]): Promise<StatementResult[]>;
  close(): Promise<void>;
}

/**
 * A connection for write transactions. Across all programs that use the database, only one may write at a
 * time.
 */
export interface WriteConnection extends Connection {
  /**
   * Begins the transaction, waits for its turn, and runs the first statements.
   *
   * @param how SQL that begins a different kind of transaction (PostgreSQL only)
   */
  begin(first: readonly Statement[], how?: string): Promise<StatementResult[]>;
  /** Runs the last statements and commits. The changes are then durable. */
  commit(last: readonly Statement[]): Promise<void>;
  /** Rolls the transaction back. Never fails: if the rollback fails, the connection is dropped. */
  rollback(): Promise<void>;
  /**
   * Removes deleted data from the database's write-ahead log, between transactions.
   *
   * @returns false while readers use the log; call it again later
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

/** Adapts Kysely to how we use SQLite. */
class OurSqliteAdapter extends SqliteAdapter {
  /** SQLite rolls back schema changes like any other change, but Kysely's adapter does not assume so. */
  override get supportsTransactionalDdl(): boolean {
    return true;
  }

  /** Our connections run statements in order, so Kysely needs no mutex. */
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

function createDriver(connection: Connection | WriteConnection): Driver {
  const kyselyConnection: DatabaseConnection = {
    async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
      const [result] = await connection.run([{ sql, parameters }]);
      const changedRows = result?.changedRows;
      // Kysely's types describe the selected columns.
      const rows = (result?.rows ?? []) as Row[];
      return changedRows === undefined ? { rows } : { rows, numAffectedRows: BigInt(changedRows) };
    },
    streamQuery() {
      throw new Error("rows are read in pages, not streamed");
    },
  };
  const writing = (): WriteConnection => {
    if ("begin" in connection) return connection;
    throw new Error("this connection is read-only");
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

export function statement(sql: string, parameters: readonly unknown[] = []): Statement {
  return CompiledQuery.raw(sql, [...parameters]);
}
