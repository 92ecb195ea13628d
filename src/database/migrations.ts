/** Migration steps from an empty database to the current schema. */
import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";
import type { DatabaseKind } from "./connection.ts";
import type { SqlTypes, TableOwner } from "./schema.ts";

// SQLite integers have up to 64 bits; PostgreSQL's `integer` has 32.
const sqlTypes: Readonly<Record<DatabaseKind, SqlTypes>> = {
  sqlite: { kind: "sqlite", text: "text", bytes: "blob", integer: "integer" },
  postgres: { kind: "postgres", text: "text", bytes: "bytea", integer: "bigint" },
};

/** Builds all owners' migration steps, by name. */
export function createMigrations(
  kind: DatabaseKind,
  owners: readonly TableOwner[],
): Record<string, Migration> {
  const steps = listSteps(kind, owners);
  return Object.fromEntries(steps.map(([name, list]) => [name, { up: (db) => runAll(db, list) }]));
}

async function runAll(db: Kysely<unknown>, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

/** Lists all owners' steps with their statements, in execution order. */
export function listSteps(kind: DatabaseKind, owners: readonly TableOwner[]): [string, readonly string[]][] {
  const steps = owners.flatMap((owner) => Object.entries(owner.steps));
  return steps.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, list]) => [name, list(sqlTypes[kind])]);
}
