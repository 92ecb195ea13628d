/** Finds objects in a database that its program did not create, such as triggers, which run within its writes. */
import { DatabaseSync } from "node:sqlite";
import { type Kysely, sql } from "kysely";
import { DEFAULT_MIGRATION_LOCK_TABLE, DEFAULT_MIGRATION_TABLE } from "kysely/migration";
import type { DatabaseKind } from "./connection.ts";
import { listSteps } from "./migrations.ts";
import { listTables, type Schema, type TableOwner } from "./schema.ts";
import { StorageError } from "./store-error.ts";

/** The parts of an open database that the checks need. */
interface SchemaPlace {
  readonly kind: DatabaseKind;
  readonly name: string;
  readonly owners: readonly TableOwner[];
  readonly reader: Kysely<Schema>;
}

/** An object of a schema. */
interface SchemaObject {
  /** "table", "index", "trigger", "view"; in PostgreSQL also "rule" and "policy". */
  readonly type: string;
  readonly name: string;
  /** The table that it belongs to. */
  readonly table: string;
}

/** An object of SQLite, and the statement that created it: https://sqlite.org/schematab.html */
interface SqliteObject extends SchemaObject {
  readonly statement: string;
}

/**
 * Refuses a database in which something changes or skips the statements of this program: triggers, rules, policies of
 * rows, and views in the place of tables. One of them can undo each revocation, and the tag of no record shows it. No
 * migration creates one.
 *
 * @throws StorageError that names them
 */
export async function requireNoForeignCode(database: SchemaPlace): Promise<void> {
  const found = await (database.kind === "sqlite" ? listSqliteCode(database) : listPostgresCode(database));
  if (found.length === 0) return;
  throw new StorageError(
    `the store ${database.name} has what this program does not create, and what can change all that it writes and reads: ` +
      `${found.map(describe).join(", ")}; find out who created it, and drop it or restore a backup`,
  );
}

async function listSqliteCode({ reader }: Pick<SchemaPlace, "reader">): Promise<SchemaObject[]> {
  const { rows } = await sql<SchemaObject>`
    select type, name, tbl_name as "table" from sqlite_schema
    where type not in ('table', 'index') or sql like 'create virtual%' order by name`.execute(reader);
  return rows;
}

/** Looks at the tables that the names of our tables mean for this session. */
async function listPostgresCode({
  owners,
  reader,
}: Pick<SchemaPlace, "owners" | "reader">): Promise<SchemaObject[]> {
  const names = sql.join(listTables(owners).map(([name]) => name));
  const { rows } = await sql<SchemaObject>`
    with ours as (
      select oid, relname, relkind from pg_class
      where relname in (${names}) and pg_table_is_visible(oid)
    )
    select 'trigger' as type, tgname as name, relname as "table" from pg_trigger join ours on tgrelid = ours.oid
      where not tgisinternal
    union all select 'rule', rulename, relname from pg_rewrite join ours on ev_class = ours.oid
      where rulename <> '_RETURN'
    union all select 'policy', polname, relname from pg_policy join ours on polrelid = ours.oid
    union all select 'view', relname, relname from ours where relkind not in ('r', 'p')
    order by 3, 2`.execute(reader);
  return rows;
}

/**
 * Compares the statements of all tables and indexes of a SQLite file with those of a new database. An index or a
 * condition that someone else added can refuse rows, and damage in a statement changes what a column accepts. PostgreSQL
 * stores no statements.
 *
 * @returns a sentence without full stop for each fault
 */
export async function verifySchema({
  kind,
  owners,
  reader,
}: Pick<SchemaPlace, "kind" | "owners" | "reader">): Promise<string[]> {
  if (kind !== "sqlite") return [];
  const { rows } = await sql<SqliteObject>`${sql.raw(selectObjects)}`.execute(reader);
  const found = new Map(rows.filter(isOurs).map((one) => [`${one.type} ${one.name}`, one]));
  const expected = new Map(createNew(owners).map((one) => [`${one.type} ${one.name}`, one]));
  return [
    ...[...expected].flatMap(([key, one]) => {
      const there = found.get(key);
      if (there === undefined) return [`${describe(one)} is missing`];
      return flatten(there.statement) === flatten(one.statement)
        ? []
        : [`${describe(one)} was changed outside of the server`];
    }),
    ...[...found].flatMap(([key, one]) =>
      expected.has(key) ? [] : [`${describe(one)} is not one that this program creates`],
    ),
  ];
}

/** SQLite creates indexes of keys itself, without a statement, and reserves names that begin with its own. */
const selectObjects = `select type, name, tbl_name as "table", sql as statement from sqlite_schema
  where sql is not null and name not like 'sqlite\\_%' escape '\\' order by name`;

/** Kysely creates its two tables by itself. */
function isOurs({ type, name }: SchemaObject): boolean {
  return type !== "table" || (name !== DEFAULT_MIGRATION_TABLE && name !== DEFAULT_MIGRATION_LOCK_TABLE);
}

/** The objects of a new database of this version. */
function createNew(owners: readonly TableOwner[]): SqliteObject[] {
  const database = new DatabaseSync(":memory:");
  try {
    for (const [, statements] of listSteps("sqlite", owners))
      for (const one of statements) database.exec(one);
    return database
      .prepare(selectObjects)
      .all()
      .map(({ type, name, table, statement }) => ({
        type: String(type),
        name: String(name),
        table: String(table),
        statement: String(statement),
      }));
  } finally {
    database.close();
  }
}

/** The indentation of a statement in the code may change. */
function flatten(statement: string): string {
  return statement.replaceAll(/\s+/g, " ");
}

/** Names come from the database: they may hold any characters. */
function describe({ type, name, table }: SchemaObject): string {
  const text = name === table ? `the ${type} ${name}` : `the ${type} ${name} on ${table}`;
  return text.replaceAll(/\p{C}/gu, "?");
}
