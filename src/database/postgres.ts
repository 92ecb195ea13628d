/** PostgreSQL 15 or newer: one write connection, and a pool for reading. */
import { readFileSync } from "node:fs";
import pg from "pg";
import { readCertificates, readPrivateKey } from "../crypto/certificate-files.ts";
import { readErrorCode } from "../system-error.ts";
import {
  type Connection,
  type Statement,
  type StatementResult,
  statement,
  type WriteConnection,
} from "./connection.ts";
import { readMessage, StorageError, type StoreFailureCode, StoreFailureError } from "./store-error.ts";

/** Oldest supported major version, and the oldest that we test. */
const oldestVersion = 15;
/** Connection timeout, in milliseconds. */
const connectMs = 5000;
/** Milliseconds for PostgreSQL to answer a statement; its own limits below are shorter. */
const answerMs = 35_000;
/** Default size of the read pool. */
export const defaultReaders = 4;
/** The advisory lock that a writer holds: an arbitrary number, the same in every version of this program. */
const writeLock = 5_202_611;

/** Session settings: commits are durable, and a hanging client does not block others. */
const sessionSettings = [
  "set synchronous_commit = on",
  // A URL, a role or a database may set different values.
  "set client_encoding = 'UTF8'",
  "set default_transaction_isolation = 'read committed'",
  "set lock_timeout = '10s'",
  "set statement_timeout = '30s'",
  "set idle_in_transaction_session_timeout = '10s'",
  "set client_min_messages = warning",
].join("; ");

/** URL parameters that name PEM files, and their readers. */
const fileReaders = {
  sslrootcert: readCertificates,
  sslcert: readCertificates,
  sslkey: readPrivateKey,
} as const;

/**
 * Reads the files named in a URL before pg does, because OpenSSL would skip a damaged block.
 *
 * @throws StorageError
 */
export function checkPostgresFiles(url: string): void {
  const { searchParams } = new URL(url);
  for (const [name, read] of Object.entries(fileReaders)) {
    const path = searchParams.get(name);
    if (path === null) continue;
    try {
      read(readFileSync(path, "utf8"));
    } catch (error) {
      throw new StorageError(`${name} of the database URL, ${path}: ${readMessage(error)}`);
    }
  }
}

interface ServerSettings {
  readonly version: string;
  readonly encoding: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
}

/**
 * Rejects an unsupported PostgreSQL version, and a database that cannot store every text.
 *
 * @returns sentences about settings that lose data if PostgreSQL's machine crashes; the operator may have
 *   chosen them and forgotten
 * @throws StorageError
 */
export async function checkPostgres(connection: Connection): Promise<string[]> {
  const [result] = await connection.run([
    statement(
      `select current_setting('server_version_num') as version, current_setting('server_encoding') as encoding,
        current_setting('fsync') as fsync, current_setting('full_page_writes') as "fullPageWrites"`,
    ),
  ]);
  const [settings] = (result?.rows ?? []) as ServerSettings[];
  const { version = "0", encoding = "" } = settings ?? {};
  const major = Math.floor(Number(version) / 10_000);
  if (major < oldestVersion)
    throw new StorageError(
      `the database runs PostgreSQL ${major}; version ${oldestVersion} or newer is required`,
    );
  if (encoding !== "UTF8")
    throw new StorageError(
      `the database has the encoding ${encoding}; create one with: create database NAME encoding 'UTF8' template template0`,
    );
  return findRisks(settings);
}

function findRisks(settings: ServerSettings | undefined): string[] {
  const risks: string[] = [];
  if (settings?.fsync === "off")
    risks.push(
      "PostgreSQL has fsync = off, so a crash of its machine can lose or damage keys and logs; set fsync = on",
    );
  if (settings?.fullPageWrites === "off")
    risks.push(
      "PostgreSQL has full_page_writes = off, so a crash of its machine can damage keys and logs, unless its file " +
        "system writes whole pages; set full_page_writes = on",
    );
  return risks;
}

/** Opens the read pool. */
export function openPostgresReader(url: string, readers = defaultReaders): Connection {
  const pool = new pg.Pool({ ...clientConfig(url), max: readers, connectionTimeoutMillis: connectMs });
  // A broken idle connection is replaced when it is needed.
  pool.on("error", () => {});
  pool.on("connect", (client) => {
    // If a connection breaks during a query, the query fails. The pool itself listens only to idle
    // connections.
    client.on("error", () => {});
    void client.query(sessionSettings).catch(() => {});
  });
  return {
    run: (statements) =>
      explaining(async () => {
        const client = await pool.connect();
        let broken = true;
        try {
          const results = await runAll(client, statements);
          broken = false;
          return results;
        } catch (error) {
          broken = isFailure(error);
          throw error;
        } finally {
          client.release(broken);
        }
      }),
    close: () => pool.end(),
  };
}

/** Opens the write connection, which reconnects after a loss. */
export function openPostgresWriter(url: string): WriteConnection {
  let client: pg.Client | undefined;
  let closed = false;

  const giveUp = (): void => {
    client?.end().catch(() => {});
    client = undefined;
  };
  /** Runs statements, and drops a connection that later calls could not use. */
  const runOrGiveUp = async (
    held: pg.Client,
    statements: readonly Statement[],
  ): Promise<StatementResult[]> => {
    try {
      return await runAll(held, statements);
    } catch (error) {
      if (held === client && isLoss(error)) giveUp();
      throw error;
    }
  };
  const connect = async (): Promise<pg.Client> => {
    if (closed) throw new StoreFailureError("UNAVAILABLE", new Error("the store is closed"));
    if (client) return client;
    const fresh = new pg.Client({ ...clientConfig(url), connectionTimeoutMillis: connectMs });
    fresh.on("error", () => {
      if (client === fresh) client = undefined;
    });
    try {
      await fresh.connect();
      await fresh.query(sessionSettings);
    } catch (error) {
      fresh.end().catch(() => {});
      throw error;
    }
    client = fresh;
    return fresh;
  };
  const run = (statements: readonly Statement[]): Promise<StatementResult[]> =>
    explaining(async () => runOrGiveUp(await connect(), statements));
  /** Runs statements of a transaction, only on the connection that began it. */
  const runOn = (held: pg.Client | undefined, statements: readonly Statement[]): Promise<StatementResult[]> =>
    explaining(async () => {
      if (held === undefined || held !== client)
        throw new StoreFailureError("UNAVAILABLE", new Error("the connection was lost during a transaction"));
      return runOrGiveUp(held, statements);
    });
  let inTransaction: pg.Client | undefined;

  const begin = async (first: readonly Statement[], how?: string): Promise<StatementResult[]> => {
    const held = await connect();
    inTransaction = held;
    // Read committed, whatever the database's default: once the lock is held, every statement sees earlier
    // writes by other programs. The transaction does not request write access, because the database may be
    // temporarily read-only.
    await held.query(
      how ?? `begin isolation level read committed; select pg_advisory_xact_lock(${writeLock})`,
    );
    return runAll(held, first);
  };

  return {
    run: (statements) => (inTransaction ? runOn(inTransaction, statements) : run(statements)),
    begin: (first, how) =>
      explaining(async () => {
        const wasOpen = client !== undefined;
        try {
          return await begin(first, how);
        } catch (error) {
          giveUp();
          inTransaction = undefined;
          // The connection may have been idle too long, or PostgreSQL may have restarted: try a new one.
          if (!wasOpen || !isLoss(error)) throw error;
          return await begin(first, how).catch((again: unknown) => {
            giveUp();
            inTransaction = undefined;
            throw again;
          });
        }
      }),
    async commit(last) {
      const results = await runOn(inTransaction, [...last, statement("commit")]);
      inTransaction = undefined;
      if (results.at(-1)?.rows[0] === "ROLLBACK") throw new Error("the transaction failed");
    },
    async rollback() {
      const held = inTransaction;
      inTransaction = undefined;
      if (held === undefined || held !== client) return;
      await held.query("rollback").catch(giveUp);
    },
    // Deleted data remains until the operator runs VACUUM, and in the operator's archives.
    scrub: async () => true,
    async close() {
      closed = true;
      await client?.end().catch(() => {});
      client = undefined;
    },
  };
}

async function runAll(
  client: pg.Client | pg.PoolClient,
  statements: readonly Statement[],
): Promise<StatementResult[]> {
  const results: StatementResult[] = [];
  for (const { sql, parameters } of statements) {
    const { command, rowCount, rows } = await client.query(sql, [...parameters]);
    if (command === "ROLLBACK" || command === "COMMIT") results.push({ rows: [command] });
    else results.push({ rows, changedRows: isChange(command) ? (rowCount ?? 0) : undefined });
  }
  return results;
}

function isChange(command: string): boolean {
  return command === "INSERT" || command === "UPDATE" || command === "DELETE";
}

function clientConfig(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "quantum-safe-playground",
    keepAlive: true,
    query_timeout: answerMs,
    types: { getTypeParser: getTypeParser as pg.CustomTypesConfig["getTypeParser"] },
  };
}

/** Object identifier of the type int8 (pg_type.oid). */
const int8 = 20;

/** Reads int8 as a number: our integers stay below 2^53, and pg would return strings. */
function getTypeParser(oid: number, format?: "text" | "binary"): unknown {
  if (oid === int8 && format !== "binary") return Number;
  return pg.types.getTypeParser(oid, format as "text");
}

/**
 * Calls a function and classifies its errors.
 *
 * @throws StoreFailureError if the database fails; statement errors are rethrown unchanged
 */
async function explaining<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof StoreFailureError) throw error;
    const code = toFailureCode(error);
    throw code === undefined ? error : new StoreFailureError(code, error);
  }
}

/**
 * SQLSTATEs (PostgreSQL manual, appendix A) of a session that has ended or is no longer usable. A session
 * that began while the database was read-only stays read-only (25006). A session that was idle too long has
 * been closed (25P03).
 */
const lossStates = /^(08|57P|25006|25P03)/;

/** Distinguishes a lost or unusable connection from a rejected statement. */
function isLoss(error: unknown): boolean {
  const cause = error instanceof StoreFailureError ? error.cause : error;
  const code = readErrorCode(cause);
  return lossStates.test(code) || connectionTrouble.test(code) || connectionTrouble.test(readMessage(cause));
}

function isFailure(error: unknown): boolean {
  return error instanceof StoreFailureError || toFailureCode(error) !== undefined;
}

/** SQLSTATEs (PostgreSQL manual, appendix A), complete or by class, that mean a database failure. */
const failureStates: readonly (readonly [RegExp, StoreFailureCode])[] = [
  [/^53100$/, "FULL"], // disk_full
  [/^XX00[12]$/, "CORRUPT"], // data_corrupted, index_corrupted
  [/^42(P01|703)$/, "CORRUPT"], // undefined_table, undefined_column: our statements use only migrated names
  [/^(08|53|57|58|40)/, "UNAVAILABLE"], // connection, resources, operator, system, rollback
  [/^(25006|25P03|55P03|28)/, "UNAVAILABLE"], // read-only, idle too long, lock not available, log-in rejected
  [/^55000$/, "UNAVAILABLE"], // the database allows no connections
  [/^3D000$/, "UNAVAILABLE"], // no such database
];

/** Error codes of Node, and messages of pg, whose errors have no code, for a failed connection. */
const connectionTrouble =
  /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)|Connection terminated|Query read timeout|timeout e|Client (was closed|has encountered a connection error)|not queryable|Cannot use a pool after/;

function toFailureCode(error: unknown): StoreFailureCode | undefined {
  // Node tries every address of a host and reports all failures in one error.
  if (error instanceof AggregateError) return "UNAVAILABLE";
  const code = readErrorCode(error);
  for (const [pattern, failure] of failureStates) if (pattern.test(code)) return failure;
  return connectionTrouble.test(code) || connectionTrouble.test(readMessage(error))
    ? "UNAVAILABLE"
    : undefined;
}
