/** Opens the database, and migrates it to this program's schema. */
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { Kysely, sql } from "kysely";
import { DEFAULT_MIGRATION_TABLE, Migrator } from "kysely/migration";
import { saysDiskFull } from "../system-error.ts";
import { type Connection, type DatabaseKind, kyselyDialect, type WriteConnection } from "./connection.ts";
import { diskFullError, isDiskFull } from "./disk-full.ts";
import { createMigrations } from "./migrations.ts";
import { createPrivateFile, makePrivateDirectory } from "./owned-files.ts";
import {
  checkPostgres,
  checkPostgresFiles,
  defaultReaders,
  openPostgresReader,
  openPostgresWriter,
} from "./postgres.ts";
import { requirePrivateStore } from "./private-store.ts";
import { openReserve, type Reserve } from "./reserve.ts";
import type { Schema, TableOwner } from "./schema.ts";
import { requireNoForeignCode } from "./schema-objects.ts";
import { type OnLost, openSqliteReader, openSqliteReaderHere, openSqliteWriter } from "./sqlite.ts";
import { mayPass, readMessage, StorageError, StoreDamagedError, StoreFailureError } from "./store-error.ts";
import { requireWholeLog } from "./write-ahead-log.ts";

/** The location of a database: a data directory (SQLite) or a URL (PostgreSQL). */
export type DatabaseLocation =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

/** Builds read queries; each sees what was committed before it. */
export type Reader = Kysely<Schema>;

/** An open database. */
export interface Database {
  readonly kind: DatabaseKind;
  /** Names it for the operator, without a password. */
  readonly name: string;
  readonly location: DatabaseLocation;
  /** The owners of its tables. */
  readonly owners: readonly TableOwner[];
  readonly reader: Reader;
  /** The connection of `reader`. */
  readonly readConnection: Connection;
  /** Builds the queries of the open transaction on `writeConnection`. */
  readonly writer: Kysely<Schema>;
  readonly writeConnection: WriteConnection;
  /** A statement that writes and changes nothing, to find out whether the database can be written. */
  readonly probe: string;
  /** The room that it keeps for when its disk is full; undefined for PostgreSQL, whose disk is another machine's. */
  readonly reserve: Reserve | undefined;
  /** Sentences for the operator about settings with which a crash loses data; see `checkPostgres`. */
  readonly risks: readonly string[];
  close(): Promise<void>;
}

/** The embedded store of a data directory. */
export function sqliteIn(dataDir: string): DatabaseLocation {
  return { kind: "sqlite", path: join(dataDir, "qsp.db") };
}

/** Whether to create a missing store and upgrade an older one ("create"), only to upgrade ("upgrade"), or neither. */
export type OpenMode = "create" | "upgrade" | "existing";

/**
 * Opens a database with the tables of these owners.
 *
 * @throws StorageError if it cannot be opened, has a step of a newer version or of a missing extension, has triggers,
 *   or its log is damaged. The modes "upgrade" and "existing" also refuse a missing store, and "existing" one of an
 *   older version.
 * @param onLost learns if the open database cannot be used any more; a lost connection to PostgreSQL comes back
 */
export async function openDatabaseOf(
  owners: readonly TableOwner[],
  location: DatabaseLocation,
  mode: OpenMode = "create",
  onLost?: OnLost,
): Promise<Database> {
  if (location.kind === "sqlite") preparePlace(location.path, mode);
  else checkPostgresFiles(location.url);
  const database = connect(owners, location, onLost);
  try {
    const risks = location.kind === "postgres" ? await checkPostgres(database.writeConnection) : [];
    await requireSteps(database, mode);
    await requireNoForeignCode(database);
    if (mode !== "existing") await migrate(database);
    // A server learns at its start, not under load, that its role may not open so many connections.
    if (location.kind === "postgres" && mode !== "existing") await openReaders(database.readConnection);
    return { ...database, risks };
  } catch (error) {
    await database.close();
    if (error instanceof StorageError) throw error;
    if (!(error instanceof StoreFailureError)) throw cannotOpen(database.name, error);
    if (error.code === "CORRUPT") throw new StoreDamagedError(database.name, readMessage(error.cause));
    if (location.kind === "sqlite" && isForRoom(error, location.path)) throw diskFullError(location.path);
    const isAway = location.kind === "postgres" && findCode(error.cause) === "ECONNREFUSED";
    throw cannotOpen(database.name, error.cause, {
      mayPass: mayPass(error),
      advice: isAway ? "; start PostgreSQL, or check --database-url" : "",
    });
  }
}

/** Opens all connections of a pool: queries that run at the same time need one each. */
async function openReaders({ run }: Connection): Promise<void> {
  const nothing = [{ sql: "select 1", parameters: [] }];
  await Promise.all(Array.from({ length: defaultReaders }, () => run(nothing)));
}

/** Runs before the first connection, because SQLite creates a missing file when it opens it. */
function preparePlace(path: string, mode: OpenMode): void {
  if (mode !== "create") requireFile(path, mode);
  try {
    if (mode === "create") makeDirectory(dirname(path));
    requirePrivateStore(path);
    requireWholeLog(path);
    // SQLite would create a file that others can read. Its other files copy the mode and the owner of this one.
    if (mode === "create") createPrivateFile(path);
  } catch (error) {
    if (error instanceof StorageError) throw error;
    throw saysDiskFull(error) ? diskFullError(path) : cannotOpen(path, error);
  }
}

function makeDirectory(path: string): void {
  try {
    makePrivateDirectory(path);
  } catch (error) {
    if (saysDiskFull(error)) throw error;
    throw new StorageError(
      `the directory ${path} cannot be created: ${readMessage(error)}; choose another one with --data-dir`,
    );
  }
}

/** Advice about a missing store: its name may be misspelt, or it is lost. */
const howToCreate = {
  existing: "check --data-dir and --database-url, or create a store there with: qsp store init",
  upgrade:
    "check --data-dir and --database-url; fill a lost store from a backup with qsp restore, or create a new one with qsp store init",
} as const;

/** Tells whether SQLite fails for want of room. Where it maps a file or creates one, it only says that it cannot. */
function isForRoom({ code, cause }: StoreFailureError, path: string): boolean {
  if (code === "FULL") return true;
  const reason = cause instanceof Error && "code" in cause ? cause.code : "";
  // SQLITE_IOERR and SQLITE_CANTOPEN.
  return (reason === "SQLITE_10" || reason === "SQLITE_14") && isDiskFull(path);
}

/** Reports a file in an unreadable directory as unreadable, not as missing. */
function requireFile(path: string, mode: keyof typeof howToCreate): void {
  try {
    statSync(path);
  } catch (error) {
    const isAbsent = error instanceof Error && "code" in error && error.code === "ENOENT";
    throw new StorageError(
      isAbsent
        ? `the store ${path} does not exist; ${howToCreate[mode]}`
        : `the store ${path} cannot be read: ${readMessage(error)}`,
    );
  }
}

function connect(owners: readonly TableOwner[], location: DatabaseLocation, onLost?: OnLost): Database {
  const { kind } = location;
  const [readConnection, writeConnection] =
    location.kind === "sqlite"
      ? [openSqliteReader(location.path, onLost), openSqliteWriter(location.path, onLost)]
      : [openPostgresReader(location.url), openPostgresWriter(location.url)];
  const reader = createReader(kind, readConnection);
  const writer = new Kysely<Schema>({ dialect: kyselyDialect(kind, writeConnection) });
  return {
    kind,
    name: describeLocation(location),
    location,
    owners,
    reader,
    readConnection,
    writer,
    writeConnection,
    probe: probes[kind],
    reserve: location.kind === "sqlite" ? openReserve(location.path) : undefined,
    risks: [],
    async close() {
      // The order matters: SQLite can truncate its log only after the reader is closed.
      await readConnection.close();
      await writeConnection.close();
    },
  };
}

/** SQLite writes the page of this number even if the number is the same. The row of Kysely's lock is always there. */
const probes: Readonly<Record<DatabaseKind, string>> = {
  sqlite: "pragma user_version = 0",
  postgres: "update kysely_migration_lock set is_locked = is_locked",
};

/** Creates a reader on a connection. */
export function createReader(kind: DatabaseKind, connection: Connection): Reader {
  return new Kysely<Schema>({ dialect: kyselyDialect(kind, connection) });
}

/** A reader on a connection of its own. */
export interface OwnReader {
  readonly reader: Reader;
  close(): Promise<void>;
}

/** Opens a reader for a thread that has nothing else to do: it may wait for the disk. */
export function openReaderHere(location: DatabaseLocation): OwnReader {
  const connection =
    location.kind === "sqlite" ? openSqliteReaderHere(location.path) : openPostgresReader(location.url, 1);
  return { reader: createReader(location.kind, connection), close: connection.close };
}

/**
 * Tells whether a database holds tables, of a store or of another program, or cannot be read.
 *
 * @throws StorageError for the damaged log of a store
 */
export async function holdsTables(location: DatabaseLocation): Promise<boolean> {
  // SQLite would remove the log of an empty file.
  if (location.kind === "sqlite") requireWholeLog(location.path);
  const { reader, close } = openReaderHere(location);
  try {
    return (await reader.introspection.getTables({ withInternalKyselyTables: true })).length > 0;
  } catch {
    return true;
  } finally {
    await close();
  }
}

/** Names a store for the operator: its file, or the host, port and database of its URL; never a password. */
export function describeLocation(location: DatabaseLocation): string {
  if (location.kind === "sqlite") return location.path;
  const { host, pathname } = new URL(location.url);
  return `postgres://${host}${pathname}`;
}

/** Runs the missing migration steps. If several programs start at once, one runs them while the others wait. */
async function migrate({ kind, owners, writeConnection }: Database): Promise<void> {
  const provider = { getMigrations: async () => createMigrations(kind, owners) };
  // The migrator continues after a failed statement, and PostgreSQL then reports an aborted transaction for each one.
  // Only the first error gives the cause.
  let first: unknown;
  const run: WriteConnection["run"] = (statements) =>
    writeConnection.run(statements).catch((error: unknown) => {
      first ??= error;
      throw error;
    });
  const writer = new Kysely<Schema>({ dialect: kyselyDialect(kind, { ...writeConnection, run }) });
  try {
    await writer.transaction().execute(async (transaction) => {
      // An extension that is added to an older store brings steps from before the last one.
      const migrator = new Migrator({ db: transaction, provider, allowUnorderedMigrations: true });
      const { error } = await migrator.migrateToLatest();
      if (error !== undefined) throw error;
    });
  } catch (error) {
    throw first ?? error;
  }
}

/** Refuses a store with steps that this program does not know. Only "create" takes a database without a store. */
async function requireSteps({ kind, name, owners, reader }: Database, mode: OpenMode): Promise<void> {
  const taken = await readSteps(reader);
  if (taken === undefined) {
    if (mode === "create") return;
    throw new StorageError(`${name} does not contain a store; ${howToCreate[mode]}`);
  }
  const known = Object.keys(createMigrations(kind, owners));
  const unknown = taken.filter((step) => !known.includes(step));
  if (unknown.length > 0)
    throw new StorageError(
      `the store ${name} has ${describeSteps(unknown)} of a newer version of this program, or of an extension that it ` +
        "lacks; use that version, or add the extension",
    );
  const missing = known.filter((step) => !taken.includes(step));
  if (mode === "existing" && missing.length > 0)
    throw new StorageError(
      `the store ${name} is of an older version, or of one without an extension: it lacks ${describeSteps(missing)}; ` +
        "start the server on it once",
    );
}

/** Reads the names of the steps that a store has taken. @returns undefined if there is no store */
async function readSteps(reader: Reader): Promise<string[] | undefined> {
  const tables = await reader.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some((table) => table.name === DEFAULT_MIGRATION_TABLE)) return undefined;
  const { rows } = await sql<{
    name: string;
  }>`select name from ${sql.table(DEFAULT_MIGRATION_TABLE)} order by name`.execute(reader);
  return rows.map((row) => row.name);
}

function describeSteps(steps: readonly string[]): string {
  return `the migration ${steps.length === 1 ? "step" : "steps"} ${steps.join(", ")}`;
}

function cannotOpen(
  store: string,
  cause: unknown,
  { mayPass = false, advice = "" }: { readonly mayPass?: boolean; readonly advice?: string } = {},
): StorageError {
  return new StorageError(`the store ${store} cannot be opened: ${describe(cause)}${advice}`, { mayPass });
}

function findCode(cause: unknown): unknown {
  return cause instanceof Error && "code" in cause ? cause.code : undefined;
}

/** Describes an error. When all addresses of a name fail, Node throws an AggregateError with an empty message. */
function describe(cause: unknown): string {
  if (cause instanceof AggregateError) return cause.errors.map(readMessage).join("; ");
  return readMessage(cause);
}
