/** Stores for tests, on a fresh location of either database, and a way straight into the database past them. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { DatabaseKind } from "../../src/storage/connection.ts";
import { type DatabaseLocation, sqliteIn } from "../../src/storage/database.ts";
import { type MasterKeySource, masterKeyIn } from "../../src/storage/master-key.ts";
import { tables } from "../../src/storage/schema.ts";
import { openStore, type Store, type StoreOptions } from "../../src/storage/store.ts";
import { describePostgres, freshDatabaseUrl } from "../postgres/shared.ts";
import { makeTemporaryDirectory } from "../temporary-directory.ts";

/** Milliseconds for one test; many start programs, on machines that have other work. */
const timeout = 60_000;

/** What a column holds; both databases give bytes as Uint8Array and whole numbers as numbers. */
export type Value = string | number | Uint8Array | null;
/** A row by its columns. */
export type Row = Readonly<Record<string, Value>>;

/** Where one test keeps a store; gone when the test ends. */
export interface Site {
  readonly location: DatabaseLocation;
  /** Holds the master key, and for SQLite the store. */
  readonly directory: string;
  readonly keyFile: string;
  readonly masterKey: MasterKeySource;
  /** Flags that point the real program here. */
  readonly flags: readonly string[];
  /** Opens the store as another program would; at the end of the test it is closed at the latest. */
  open(options?: Partial<StoreOptions>): Promise<Store>;
  /** Runs a statement straight in the database. Placeholders are $1, $2 and so on. */
  sql(text: string, values?: readonly Value[]): Promise<Row[]>;
}

/** Makes a site where there is nothing yet. */
export type MakeSite = () => Promise<Site>;

/** Describes what must hold in both databases. */
export function describeStores(name: string, define: (makeSite: MakeSite, kind: DatabaseKind) => void): void {
  describe(name, { timeout }, () => {
    describe("in SQLite", () => define(makeSqliteSite, "sqlite"));
    describePostgres("in PostgreSQL", () => define(makePostgresSite, "postgres"));
  });
}

export async function makeSqliteSite(): Promise<Site> {
  const directory = makeTemporaryDirectory();
  return makeSite(directory, sqliteIn(directory), ["--data-dir", directory]);
}

export async function makePostgresSite(): Promise<Site> {
  const directory = makeTemporaryDirectory();
  const url = await freshDatabaseUrl();
  return makeSite(directory, { kind: "postgres", url }, ["--data-dir", directory, "--database-url", url]);
}

function makeSite(directory: string, location: DatabaseLocation, flags: readonly string[]): Site {
  const masterKey = masterKeyIn(directory);
  const connect = connectToPostgres(location.kind === "postgres" ? location.url : "");
  return {
    location,
    directory,
    keyFile: join(directory, "master.key"),
    masterKey,
    flags,
    async open(options) {
      const provider = await createCryptoProvider("openssl");
      onTestFinished(() => provider.close());
      const store = await openStore({ location, masterKey, provider, ...options });
      let closing: Promise<void> | undefined;
      const close = (): Promise<void> => {
        closing ??= store.close();
        return closing;
      };
      onTestFinished(close);
      return { ...store, close };
    },
    async sql(text, values = []) {
      const rows =
        location.kind === "sqlite"
          ? runInSqlite(location.path, text, values)
          : (await (await connect()).query(text, [...values])).rows;
      return rows.map(toPlainRow);
    },
  };
}

function runInSqlite(path: string, text: string, values: readonly Value[]): Record<string, unknown>[] {
  const database = new DatabaseSync(path, { timeout: 5000 });
  try {
    return database.prepare(text).all(Object.fromEntries(values.map((value, i) => [`$${i + 1}`, value])));
  } finally {
    database.close();
  }
}

/** Connects at the first statement, and until the end of the test. */
function connectToPostgres(connectionString: string): () => Promise<pg.Client> {
  let connecting: Promise<pg.Client> | undefined;
  return () => {
    connecting ??= (async () => {
      const client = new pg.Client({ connectionString, types: { getTypeParser } });
      await client.connect();
      onTestFinished(() => client.end());
      return client;
    })();
    return connecting;
  };
}

/** The client gives whole numbers of 64 bits as strings. */
const getTypeParser = ((oid: number, format?: "text" | "binary") =>
  oid === pg.types.builtins.INT8
    ? Number
    : pg.types.getTypeParser(oid, format as "text")) as pg.CustomTypesConfig["getTypeParser"];

function toPlainRow(row: Record<string, unknown>): Row {
  const plain = (value: unknown): Value =>
    // Buffers and plain arrays are not equal to each other.
    value instanceof Uint8Array ? Uint8Array.from(value) : (value as Value);
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)]));
}

/** All rows of all tables, each table sorted by what its rows hold. */
export async function readAllRows({ sql }: Site): Promise<Record<string, Row[]>> {
  const found: Record<string, Row[]> = {};
  for (const table of Object.keys(tables)) {
    const rows = await sql(`select * from ${table}`);
    found[table] = rows
      .map((row) => [fingerprint(row), row] as const)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([, row]) => row);
  }
  return found;
}

function fingerprint(row: Row): string {
  return JSON.stringify(
    Object.keys(row)
      .sort()
      .map((name) => {
        const value = row[name];
        return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
      }),
  );
}
