/** Opens a database and migrates it to this program's schema. */
import { accessSync, constants, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { Kysely, sql } from "kysely";
import { DEFAULT_MIGRATION_TABLE, Migrator } from "kysely/migration";
import { readErrorCode, saysDiskFull } from "../system-error.ts";
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

/** Location of a database: a data directory (SQLite) or a URL (PostgreSQL). */
export type DatabaseLocation =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

/** Builds read queries; each one sees everything committed before it. */
export type Reader = Kysely<Schema>;

export interface Database {
  readonly kind: DatabaseKind;
  /** Name to show to operators, without a password. */
  readonly name: string;
  readonly location: DatabaseLocation;
  /** Owners of its tables. */
  readonly owners: readonly TableOwner[];
  readonly reader: Reader;
  /** The connection behind `reader`. */
  readonly readConnection: Connection;
  /** Builds queries for the open transaction on `writeConnection`. */
  readonly writer: Kysely<Schema>;
  readonly writeConnection: WriteConnection;
  /** A statement that writes without changing anything, to check whether the database is writable. */
  readonly probe: string;
  /**
   * Disk space reserved for when the disk is full; undefined for PostgreSQL, whose disk is on another
   * machine.
   */
  readonly reserve: Reserve | undefined;
  /** Operator warnings about settings that lose data in a crash; see `checkPostgres`. */
  readonly risks: readonly string[];
  close(): Promise<void>;
}

/** The embedded store in a data directory. */
export function sqliteIn(dataDir: string): DatabaseLocation {
  return { kind: "sqlite", path: join(dataDir, "qsp.db") };
}

/**
 * Whether to create a missing store and upgrade an older one ("create"), only create ("fill"), only upgrade
 * ("upgrade"), or do neither.
 */
export type OpenMode = "create" | "fill" | "upgrade" | "existing";

function mayCreate(mode: OpenMode): mode is "create" | "fill" {
  return mode === "create" || mode === "fill";
}

/**
 * Opens a database with these owners' tables.
 *
 * @throws StorageError if the database cannot be opened, contains migration steps from a newer version or a
 *   missing extension, has triggers, or has a damaged log. The modes "upgrade" and "existing" also reject a
 *   missing store, and "fill" and "existing" reject a store that needs an upgrade.
 * @param onLost called if the open database becomes unusable for good; lost PostgreSQL connections are
 *   reopened
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
    // Fail at startup, not under load, if the role may not open enough connections.
    if (location.kind === "postgres" && mode !== "existing") await openReaders(database.readConnection);
    return { ...database, risks };
  } catch (error) {
    await database.close();
    if (error instanceof StorageError) throw error;
    if (!(error instanceof StoreFailureError)) throw cannotOpen(database.name, error);
    if (error.code === "CORRUPT") throw new StoreDamagedError(database.name, readMessage(error.cause));
    if (location.kind === "sqlite" && isForRoom(error, location.path)) throw diskFullError(location.path);
    const isAway = location.kind === "postgres" && readErrorCode(error.cause) === "ECONNREFUSED";
    throw cannotOpen(database.name, findCause(error, location), {
      mayPass: mayPass(error),
      advice: isAway ? "; start PostgreSQL, or check --database-url" : "",
    });
  }
}

/** Opens all connections of a pool by running one query on each at the same time. */
async function openReaders({ run }: Connection): Promise<void> {
  const nothing = [{ sql: "select 1", parameters: [] }];
  await Promise.all(Array.from({ length: defaultReaders }, () => run(nothing)));
}

/** Runs before the first connection because SQLite creates a missing file when it opens it. */
function preparePlace(path: string, mode: OpenMode): void {
  if (!mayCreate(mode)) requireFile(path, mode);
  try {
    if (mayCreate(mode)) makeDirectory(dirname(path));
    requirePrivateStore(path);
    requireWholeLog(path);
    // SQLite would create a file that other users can read. Its other files inherit this file's mode and
    // owner.
    if (mayCreate(mode)) createPrivateFile(path);
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
      `the directory ${path} cannot be created: ${readMessage(error)}; choose a different directory with --data-dir`,
    );
  }
}

/** Advice for a missing store: its name may be misspelled, or the store is lost. */
const howToCreate = {
  existing: "check --data-dir and --database-url, or create a store there with: qsp store init",
  upgrade:
    "check --data-dir and --database-url; fill a lost store from a backup with qsp restore, or create a new one with qsp store init",
} as const;

/**
 * Returns whether SQLite failed for lack of disk space. Where it maps or creates a file, it reports only that
 * it cannot.
 */
function isForRoom({ code, cause }: StoreFailureError, path: string): boolean {
  if (code === "FULL") return true;
  // SQLITE_IOERR and SQLITE_CANTOPEN.
  return ["SQLITE_10", "SQLITE_14"].includes(readErrorCode(cause)) && isDiskFull(path);
}

/** Finds why SQLite cannot open a file: it does not report the operating system's reason. */
function findCause({ cause }: StoreFailureError, location: DatabaseLocation): unknown {
  if (location.kind !== "sqlite" || !/^SQLITE_(8|14)$/.test(readErrorCode(cause))) return cause;
  try {
    accessSync(location.path, constants.W_OK);
  } catch (error) {
    return error;
  }
  return cause;
}

/** Reports a file in an unreadable directory as unreadable, not as missing. */
function requireFile(path: string, mode: keyof typeof howToCreate): void {
  try {
    statSync(path);
  } catch (error) {
    throw new StorageError(
      readErrorCode(error) === "ENOENT"
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
      // Order matters: SQLite can truncate its log only after the reader is closed.
      await readConnection.close();
      await writeConnection.close();
    },
  };
}

/** SQLite writes the page even if the number stays the same. The row of Kysely's lock always exists. */
const probes: Readonly<Record<DatabaseKind, string>> = {
  sqlite: "pragma user_version = 0",
  postgres: "update kysely_migration_lock set is_locked = is_locked",
};

/** Creates a reader on a connection. */
export function createReader(kind: DatabaseKind, connection: Connection): Reader {
  return new Kysely<Schema>({ dialect: kyselyDialect(kind, connection) });
}

/** A reader with its own connection. */
export interface OwnReader {
  readonly reader: Reader;
  close(): Promise<void>;
}

/** Opens a reader for a thread that may block on the disk because it does nothing else. */
export function openReaderHere(location: DatabaseLocation): OwnReader {
  const connection =
    location.kind === "sqlite" ? openSqliteReaderHere(location.path) : openPostgresReader(location.url, 1);
  return { reader: createReader(location.kind, connection), close: connection.close };
}

/**
 * Returns whether a database contains tables, of a store or another program, or cannot be read.
 *
 * @throws StorageError if a store's log is damaged
 */
export async function holdsTables(location: DatabaseLocation): Promise<boolean> {
  // SQLite would delete the log of an empty file.
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

/** Describes a store for operators: its file, or the host, port and database of its URL, never a password. */
export function describeLocation(location: DatabaseLocation): string {
  if (location.kind === "sqlite") return location.path;
  const { host, pathname } = new URL(location.url);
  return `postgres://${host}${pathname}`;
}

/** Runs missing migration steps. If several programs start at once, one migrates while the others wait. */
async function migrate({ kind, owners, writeConnection }: Database): Promise<void> {
  const provider = { getMigrations: async () => createMigrations(kind, owners) };
  // After a failed statement the migrator continues, and PostgreSQL then reports an aborted transaction for
  // each statement. Only the first error shows the cause.
  let first: unknown;
  const run: WriteConnection["run"] = (statements) =>
    writeConnection.run(statements).catch((error: unknown) => {
      first ??= error;
      throw error;
    });
  const writer = new Kysely<Schema>({ dialect: kyselyDialect(kind, { ...writeConnection, run }) });
  try {
    await writer.transaction().execute(async (transaction) => {
      // Adding an extension to an existing store adds steps that sort before the last one.
      const migrator = new Migrator({ db: transaction, provider, allowUnorderedMigrations: true });
      const { error } = await migrator.migrateToLatest();
      if (error !== undefined) throw error;
    });
  } catch (error) {
    throw first ?? error;
  }
}

/** Rejects a store with unknown migration steps, and a database without a store unless it may be created. */
async function requireSteps({ kind, name, owners, reader }: Database, mode: OpenMode): Promise<void> {
  const taken = await readSteps(reader);
  if (taken === undefined) {
    if (mayCreate(mode)) return;
    throw new StorageError(`${name} does not contain a store; ${howToCreate[mode]}`);
  }
  const known = Object.keys(createMigrations(kind, owners));
  const unknown = taken.filter((step) => !known.includes(step));
  if (unknown.length > 0)
    throw new StorageError(
      `the store ${name} has ${describeSteps(unknown)} from a newer version of this program or from an extension that it ` +
        "lacks; use that version or add the extension",
    );
  const missing = known.filter((step) => !taken.includes(step));
  if (mode === "fill" && missing.length > 0) throw alreadyHasStore(name);
  if (mode === "existing" && missing.length > 0)
    throw new StorageError(
      `the store ${name} was created by an older version or without an extension: it lacks ${describeSteps(missing)}; ` +
        "start the server with it once to upgrade it",
    );
}

/** Creates the error for a store that was to be filled. */
export function alreadyHasStore(name: string): StorageError {
  return new StorageError(`${name} already contains a store`);
}

/**
 * Lists the steps that a store has completed.
 *
 * @returns undefined if the database does not contain a store
 */
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
  return new StorageError(`the store ${store} cannot be opened: ${readMessage(cause)}${advice}`, { mayPass });
}
