/** Stores on a fresh location of SQLite or PostgreSQL, and a way straight into the database past them. */
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

/** Milliseconds for one test; many start programs, on machines that have other work. */
const timeout = 180_000;

/** What a column can hold. */
export type Value = string | number | Uint8Array | null;
/** A row, bytes as plain Uint8Array and whole numbers as numbers. */
export type Row = Readonly<Record<string, Value>>;
/** Where one test, or a block of them, keeps its store; gone at the end. */
export interface Place {
  readonly location: DatabaseLocation;
  /** Of the test alone; holds the master key, and for SQLite the store. */
  readonly directory: string;
  readonly keyFile: string;
  readonly masterKey: MasterKeySource;
  /** The settings that point the real program here. */
  readonly settings: readonly string[];
  /** Opens the store as one program does; each call is another program. It is closed at the end at the latest. */
  open(options?: OpenOptions): Promise<Store>;
  /** Runs one statement straight in the database, past the store. Placeholders are $1, $2 and so on. */
  query(sql: string, values?: readonly Value[]): Promise<Row[]>;
}

/** What differs from the store of the place itself. */
interface OpenOptions extends Partial<StoreOptions> {
  /** The end of the test, unless another is given. */
  readonly atEnd?: AtEnd;
}

/** Makes a place where nothing is yet. */
export type MakePlace = (atEnd?: AtEnd) => Promise<Place>;

/** Describes tests that run twice: in SQLite among the quick tests, in PostgreSQL among the slow ones. */
export function describeStores(name: string, define: (makePlace: MakePlace) => void): void {
  describe(name, { timeout }, () => {
    if (runsOn("sqlite")) describe("in SQLite", () => define(makeSqlitePlace));
    describePostgres("in PostgreSQL", () => define(makePostgresPlace));
  });
}

export async function makeSqlitePlace(atEnd?: AtEnd): Promise<Place> {
  const directory = makeTemporaryDirectory(atEnd);
  const path = join(directory, "qsp.db");
  const query: Place["query"] = async (sql, values) => querySqlite(path, sql, values);
  return makePlace({ directory, location: sqliteIn(directory), settings: [], query });
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
function querySqlite(path: string, sql: string, values: readonly Value[] = []): Row[] {
  const database = new DatabaseSync(path, { timeout: 5000 });
  try {
    const named = Object.fromEntries(values.map((value, i) => [`$${i + 1}`, value]));
    return database.prepare(sql).all(named).map(toPlainRow);
  } finally {
    database.close();
  }
}

/** pg gives whole numbers of 64 bits as strings. */
const getTypeParser: typeof pg.types.getTypeParser = (oid: number, format?: unknown) =>
  oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as "text");

/** A row as both databases give it: a Buffer is not equal to a plain array of the same bytes. */
function toPlainRow(row: Record<string, unknown>): Row {
  const plain = (value: unknown) => (value instanceof Uint8Array ? Uint8Array.from(value) : value);
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value) as Value]));
}
