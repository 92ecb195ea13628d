/** Finds database objects that this program did not create, such as triggers, which run inside its writes. */
import { DatabaseSync } from "node:sqlite";
import { type Kysely, sql } from "kysely";
import { DEFAULT_MIGRATION_LOCK_TABLE, DEFAULT_MIGRATION_TABLE } from "kysely/migration";
import type { DatabaseKind } from "./connection.ts";
import { listSteps } from "./migrations.ts";
import { listTables, type Schema, type TableOwner } from "./schema.ts";
import { StorageError } from "./store-error.ts";

/** What the checks need of an open database. */
interface SchemaPlace {
  readonly kind: DatabaseKind;
  readonly name: string;
  readonly owners: readonly TableOwner[];
  readonly reader: Kysely<Schema>;
}

interface SchemaObject {
  /** "table", "index", "trigger", "view"; in PostgreSQL also "rule" and "policy". */
  readonly type: string;
  readonly name: string;
  /** The table to which it belongs. */
  readonly table: string;
}

/** A SQLite object and the statement that created it: https://sqlite.org/schematab.html */
interface SqliteObject extends SchemaObject {
  readonly statement: string;
}

/**
 * Rejects a database in which something changes or skips this program's statements: triggers, rules, row
 * policies, and views in place of tables. Any of them could undo every revocation without breaking a record's
 * tag. No migration creates one.
 *
 * @throws StorageError that names them
 */
export async function requireNoForeignCode(database: SchemaPlace): Promise<void> {
  const found = await (database.kind === "sqlite" ? listSqliteCode(database) : listPostgresCode(database));
  if (found.length === 0) return;
  throw new StorageError(
    `the store ${database.name} has objects that this program did not create and that can change everything it writes and reads: ` +
      `${found.map(describe).join(", ")}; find out who created them, then drop them or restore a backup`,
  );
}

async function listSqliteCode({ reader }: Pick<SchemaPlace, "reader">): Promise<SchemaObject[]> {
  const { rows } = await sql<SchemaObject>`
    select type, name, tbl_name as "table" from sqlite_schema
    where type not in ('table', 'index') or sql like 'create virtual%' order by name`.execute(reader);
  return rows;
}

/** Checks the tables to which our table names resolve in this session. */
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
 * Compares the statements of all tables and indexes in a SQLite file with those in a new database. A foreign
 * index or constraint can reject rows, and a damaged statement changes what a column accepts. PostgreSQL does
 * not store statements.
 *
 * @returns one sentence per problem, without a full stop
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
      expected.has(key) ? [] : [`${describe(one)} was not created by this program`],
    ),
  ];
}

/** SQLite creates key indexes itself, without a statement, under names with a reserved prefix. */
const selectObjects = `select type, name, tbl_name as "table", sql as statement from sqlite_schema
  where sql is not null and name not like 'sqlite\\_%' escape '\\' order by name`;

/** Kysely creates its two tables itself. */
function isOurs({ type, name }: SchemaObject): boolean {
  return type !== "table" || (name !== DEFAULT_MIGRATION_TABLE && name !== DEFAULT_MIGRATION_LOCK_TABLE);
}

/** Lists the objects of a new database of this version. */
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

/** Ignores indentation, because a statement's indentation in the code may change. */
function flatten(statement: string): string {
  return statement.replaceAll(/\s+/g, " ");
}

/** Names come from the database, so they may contain any characters. */
function describe({ type, name, table }: SchemaObject): string {
  const text = name === table ? `the ${type} ${name}` : `the ${type} ${name} on ${table}`;
  return text.replaceAll(/\p{C}/gu, "?");
}
