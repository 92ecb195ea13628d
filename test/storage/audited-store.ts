/** Stores with an audit log, on a fresh location of either database, and SQL straight in it for tampering. */
import { hash } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import canonicalize from "canonicalize";
import pg from "pg";
import { describe, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { AuditVerification } from "../../src/storage/audit-verification.ts";
import type { DatabaseLocation } from "../../src/storage/database.ts";
import { masterKeyIn } from "../../src/storage/master-key.ts";
import type { AuditCheckpointsTable, AuditEntriesTable, AuditHeadTable } from "../../src/storage/schema.ts";
import { openStore, type Store } from "../../src/storage/store.ts";
import { describePostgres, freshDatabaseUrl } from "../postgres/shared.ts";
import { makeTemporaryDirectory } from "../temporary-directory.ts";

/** Milliseconds for one test or hook; many start programs, on machines that have other work. */
const timeout = 60_000;

type Value = string | number | Uint8Array;
type Row = Readonly<Record<string, unknown>>;
/** Registers what ends a test, or with `afterAll` a block of them. */
type AtEnd = (end: () => void) => void;

/** A location where a test keeps a store. */
export interface AuditedPlace {
  /** Holds the master key, and for SQLite the database. */
  readonly dataDir: string;
  /** Flags that point the real program here. */
  readonly flags: readonly string[];
  /** Opens the store, each time as another program would; it is closed at the end at the latest. */
  open(atEnd?: AtEnd): Promise<Store>;
  /** Runs a statement straight in the database; its placeholders are $1, $2 and so on. */
  sql(text: string, values?: readonly Value[]): Promise<Row[]>;
  /** The names of all tables. */
  tableNames(): Promise<string[]>;
}

/** Makes a location where there is no store yet. */
export type MakePlace = (atEnd?: AtEnd) => Promise<AuditedPlace>;

/** Describes what must hold on both databases. */
export function describeOnBoth(name: string, define: (makePlace: MakePlace) => void): void {
  describe(name, { timeout }, () => {
    describe("on SQLite", () => define(makeSqlitePlace));
    describePostgres("on PostgreSQL", () => define(makePostgresPlace));
  });
}

export const makeSqlitePlace: MakePlace = async (atEnd = onTestFinished) => {
  const dataDir = makeTemporaryDirectory(atEnd);
  const location = { kind: "sqlite", path: join(dataDir, "qsp.db") } as const;
  let database: DatabaseSync | undefined;
  atEnd(() => database?.close());
  const sql: AuditedPlace["sql"] = async (text, values = []) => {
    database ??= new DatabaseSync(location.path, { timeout: 5000 });
    return database.prepare(text).all(Object.fromEntries(values.map((value, i) => [`$${i + 1}`, value])));
  };
  const listTables = "select name from sqlite_master where type = 'table'";
  return makePlace({ dataDir, location, flags: ["--data-dir", dataDir], sql, listTables });
};

const makePostgresPlace: MakePlace = async (atEnd = onTestFinished) => {
  const dataDir = makeTemporaryDirectory(atEnd);
  const url = await freshDatabaseUrl();
  const client = new pg.Client({ connectionString: url, types: { getTypeParser } });
  await client.connect();
  atEnd(() => client.end());
  const sql: AuditedPlace["sql"] = async (text, values = []) => (await client.query(text, [...values])).rows;
  const listTables = "select table_name as name from information_schema.tables where table_schema = 'public'";
  const flags = ["--data-dir", dataDir, "--database-url", url];
  return makePlace({ dataDir, location: { kind: "postgres", url }, flags, sql, listTables });
};

/** pg gives whole numbers of 64 bits as strings. */
const getTypeParser: typeof pg.types.getTypeParser = (oid: number, format?: unknown) =>
  oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as "text");

interface PlaceParts extends Pick<AuditedPlace, "dataDir" | "flags" | "sql"> {
  readonly location: DatabaseLocation;
  /** Lists the tables of the database as "name". */
  readonly listTables: string;
}

function makePlace({ dataDir, flags, sql, location, listTables }: PlaceParts): AuditedPlace {
  return {
    dataDir,
    flags,
    sql,
    tableNames: async () => (await sql(listTables)).map(({ name }) => String(name)),
    async open(atEnd = onTestFinished) {
      const provider = await createCryptoProvider("openssl");
      atEnd(() => provider.close());
      const store = await openStore({ location, masterKey: masterKeyIn(dataDir), provider });
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

/** Puts entries into the log in one transaction; each is named after the user and its place among them. */
export function writeEntries(store: Store, count: number, user = "ada"): Promise<void> {
  return store.write(async ({ audit }) => {
    for (let n = 1; n <= count; n++)
      audit({ keyId: `key-${n}`, operation: "SIGN", user, outcome: "OK", details: `bytes=${n}` });
  });
}

/** All entries as they lie in the database, in their order. */
export async function readEntryRows({ sql }: AuditedPlace): Promise<AuditEntriesTable[]> {
  return (await sql("select * from audit_entries order by sequence")) as never;
}

/** The hash of an entry, as proto/kms/audit.proto says it is computed. */
export function hashOfRow(row: AuditEntriesTable, previousHash: string): string {
  const members = {
    sequence: row.sequence,
    keyId: row.key_id,
    operation: row.operation,
    user: row.user_name,
    timestamp: new Date(row.occurred_at_ms).toISOString(),
    outcome: row.outcome,
    details: row.details,
    previousHash,
  };
  return hash("sha256", canonicalize(members) ?? "", "hex");
}

/** A copy of all tables of the audit log. */
export interface AuditCopy {
  readonly audit_entries: readonly AuditEntriesTable[];
  readonly audit_head: readonly AuditHeadTable[];
  readonly audit_checkpoints: readonly AuditCheckpointsTable[];
}

/** Copies the log, as somebody could who reads the database. */
export async function copyLog({ sql }: AuditedPlace): Promise<AuditCopy> {
  const read = (table: keyof AuditCopy) => sql(`select * from ${table} order by sequence`);
  return {
    audit_entries: (await read("audit_entries")) as never,
    audit_head: (await read("audit_head")) as never,
    audit_checkpoints: (await read("audit_checkpoints")) as never,
  };
}

/** Puts a copy, or some tables of one, in the place of what is there. */
export async function restoreLog(place: AuditedPlace, copy: Partial<AuditCopy>): Promise<void> {
  for (const [table, rows] of Object.entries(copy)) {
    await place.sql(`delete from ${table}`);
    await insertRows(place, table, rows);
  }
}

/** Puts an entry straight into the database. */
export function insertEntry(place: AuditedPlace, row: AuditEntriesTable): Promise<void> {
  return insertRows(place, "audit_entries", [row]);
}

async function insertRows({ sql }: AuditedPlace, table: string, rows: readonly object[]): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const columns = Object.keys(first);
  const tuples = rows.map((_, i) => `(${columns.map((_, j) => `$${i * columns.length + j + 1}`).join()})`);
  const values = rows.flatMap((row) => Object.values(row));
  await sql(`insert into ${table} (${columns.join()}) values ${tuples.join()}`, values);
}

/** What a program can act on in what verification found. */
export function verdict({ valid, entries, firstBrokenSequence, checkpoint }: AuditVerification) {
  return { valid, entries, firstBrokenSequence, checkpointAt: checkpoint?.sequence };
}
