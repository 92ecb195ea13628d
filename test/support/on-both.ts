/** Stores on a fresh SQLite or PostgreSQL location, with direct access to the database. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { type DatabaseLocation, sqliteIn } from "../../src/database/database.ts";
import { type MasterKeySource, masterKeyIn } from "../../src/secrets/master-key.ts";
import type { Store, StoreOptions } from "../../src/store/store.ts";
import type { AtEnd } from "./at-end.ts";
import { openStore } from "./open-store.ts";
import { describePostgres, freshDatabaseUrl, runsOn } from "./postgres.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";
import { whenUnlocked } from "./when-unlocked.ts";

/** Timeout in milliseconds for one test; many start programs, on busy machines. */
const timeout = 180_000;

/** What a column can contain. */
export type Value = string | number | Uint8Array | null;
/** A row, with bytes as plain Uint8Array and whole numbers as numbers. */
export type Row = Readonly<Record<string, Value>>;
/** Where a test or suite keeps its store; removed at the end. */
export interface Place {
  readonly location: DatabaseLocation;
  /** The test's own directory; contains the master key and, with SQLite, the store. */
  readonly directory: string;
  readonly keyFile: string;
  readonly masterKey: MasterKeySource;
  /** The settings that point a real program to this place. */
  readonly settings: readonly string[];
  /**
   * Opens the store like a separate program; each call is a further one. Closed no later than at the end of the test.
   */
  open(options?: OpenOptions): Promise<Store>;
  /** Runs one statement directly in the database, bypassing the store. Placeholders are $1, $2 and so on. */
  query(sql: string, values?: readonly Value[]): Promise<Row[]>;
}

/** Overrides for how the store is opened. */
interface OpenOptions extends Partial<StoreOptions> {
  /** When to close it; by default at the end of the test. */
  readonly atEnd?: AtEnd;
}

/** Creates an empty place. */
export type MakePlace = (atEnd?: AtEnd) => Promise<Place>;

/** Describes tests that run twice: on SQLite with the quick tests, on PostgreSQL with the slow ones. */
export function describeStores(name: string, define: (makePlace: MakePlace) => void): void {
  describe(name, { timeout }, () => {
    if (runsOn("sqlite")) describe("in SQLite", () => define(makeSqlitePlace));
    describePostgres("in PostgreSQL", () => define(makePostgresPlace));
  });
}

/** Creates a place, and opens its store. */
export async function openNew(
  makePlace: MakePlace,
): Promise<{ readonly place: Place; readonly store: Store }> {
  const place = await makePlace();
  return { place, store: await place.open() };
}

export async function makeSqlitePlace(atEnd?: AtEnd): Promise<Place> {
  const directory = makeTemporaryDirectory(atEnd);
  const path = join(directory, "qsp.db");
  const query: Place["query"] = async (sql, values) => querySqlite(path, sql, values);
  return makePlace({ directory, location: sqliteIn(directory), settings: [], query });
}

/** Copies the store of a directory, which no program has open, for one test. */
export async function copySqlitePlace(directory: string): Promise<Place> {
  const place = await makeSqlitePlace();
  cpSync(directory, place.directory, { recursive: true });
  return place;
}

export async function makePostgresPlace(atEnd: AtEnd = onTestFinished): Promise<Place> {
  const directory = makeTemporaryDirectory(atEnd);
  const url = await freshDatabaseUrl();
  const client = new pg.Client({ connectionString: url, types: { getTypeParser } });
  await client.connect();
  atEnd(() => client.end());
  const query: Place["query"] = async (sql, values = []) =>
    (await client.query(sql, [...values])).rows.map(toPlainRow);
  const settings = ["--database-url", url];
  return makePlace({ directory, location: { kind: "postgres", url }, settings, query });
}

function makePlace({
  directory,
  location,
  settings,
  query,
}: Pick<Place, "directory" | "location" | "settings" | "query">): Place {
  const masterKey = masterKeyIn(directory);
  return {
    location,
    directory,
    keyFile: join(directory, "master.key"),
    masterKey,
    settings: ["--data-dir", directory, ...settings],
    query,
    async open({ atEnd = onTestFinished, ...options } = {}) {
      const provider = await createCryptoProvider("openssl");
      atEnd(() => provider.close());
      const store = await openStore({ location, masterKey, provider, ...options });
      let closing: Promise<void> | undefined;
      const close = (): Promise<void> => {
        closing ??= store.close();
        return closing;
      };
      atEnd(close);
      return { ...store, close };
    },
  };
}

/** Runs one statement in a SQLite file. */
async function querySqlite(path: string, sql: string, values: readonly Value[] = []): Promise<Row[]> {
  using database = new DatabaseSync(path);
  const named = Object.fromEntries(values.map((value, i) => [`$${i + 1}`, value]));
  return await whenUnlocked(() => database.prepare(sql).all(named).map(toPlainRow));
}

/** pg returns 64-bit integers as strings. */
const getTypeParser: typeof pg.types.getTypeParser = (oid: number, format?: unknown) =>
  oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as "text");

/** Normalizes a row for both databases: a Buffer does not equal a plain array with the same bytes. */
function toPlainRow(row: Record<string, unknown>): Row {
  const plain = (value: unknown) => (value instanceof Uint8Array ? Uint8Array.from(value) : value);
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value) as Value]));
}
