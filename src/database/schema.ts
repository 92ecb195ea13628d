/** Database tables, as their owners declare them. */
import type { Kysely } from "kysely";
import type { DatabaseKind } from "./connection.ts";

/**
 * Every table by name. Empty here: a table's owner extends it with `declare module`, next to the columns.
 * Times are milliseconds since 1970, UTC; hashes and tags are lower-case hexadecimal.
 */
// biome-ignore lint/suspicious/noEmptyInterface: owners extend it, which only an interface allows.
export interface Schema {}

/** SQL names of types that differ between databases. */
export interface SqlTypes {
  /** For steps that need a function of one database. */
  readonly kind: DatabaseKind;
  readonly text: string;
  readonly bytes: string;
  /** Up to 64 bits. */
  readonly integer: string;
}

/** Tables of one part of the program. */
export interface TableOwner {
  /** Key columns of each table, which order its rows; tables come after the tables on which they depend. */
  readonly tables: { readonly [Table in keyof Schema]?: readonly (keyof Schema[Table] & string)[] };
  /** Tables with rows of hundreds of kilobytes or more. */
  readonly largeTables?: readonly (keyof Schema)[];
  /** Tables in which every row has an audit log entry. */
  readonly auditedTables?: readonly (keyof Schema)[];
  /** Tables in which every row has an identity log entry. */
  readonly identityTables?: readonly (keyof Schema)[];
  /**
   * Migration steps: SQL statements by step name. Steps run once each, in name order; steps of an extension
   * that is added later run then. A new step needs a higher number than all released steps, and a released
   * step never changes.
   */
  readonly steps: Readonly<Record<string, (types: SqlTypes) => readonly string[]>>;
}

/** Lists all owners' tables in which every row has an entry in one of the logs. */
export function listTablesWith(
  owners: readonly TableOwner[],
  log: "auditedTables" | "identityTables",
): (keyof Schema)[] {
  return owners.flatMap((owner) => owner[log] ?? []);
}

/** Lists all owners' tables, each with the columns that order its rows. */
export function listTables(owners: readonly TableOwner[]): [keyof Schema, readonly string[]][] {
  // The names are keys of Schema, as the type of `tables` ensures.
  return owners.flatMap(({ tables }) => Object.entries(tables)) as [keyof Schema, readonly string[]][];
}

/** Values that databases store in a column. */
export type ColumnValue = string | number | Uint8Array | null;

/** A row whose columns are known only at run time. */
export type AnyRow = Record<string, ColumnValue>;

/**
 * Gives access to tables whose names are known only at run time. Kysely derives a table's type from its
 * literal name, which generic code does not have. The declared columns match the schema, which is derived
 * from them.
 */
export function anyTable(db: Kysely<Schema>): Kysely<Record<string, AnyRow>> {
  return db as unknown as Kysely<Record<string, AnyRow>>;
}
