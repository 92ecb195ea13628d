/** The tables of a database, as their owners declare them. */

import type { DatabaseKind } from "./connection.ts";

/**
 * Every table by its name. It is empty here: the owner of a table adds it with `declare module`, next to the columns.
 * Times are milliseconds since 1970, UTC; hashes and tags are lower-case hexadecimal.
 */
// biome-ignore lint/suspicious/noEmptyInterface: owners add to it, which only an interface allows.
export interface Schema {}

/** The SQL of types that databases name differently. */
export interface SqlTypes {
  /** For a step that needs a function of one database. */
  readonly kind: DatabaseKind;
  readonly text: string;
  readonly bytes: string;
  /** Of up to 64 bits. */
  readonly integer: string;
}

/** The tables of one part of the program. */
export interface TableOwner {
  /** The columns that order the rows of each table; a table comes after those that it depends on. */
  readonly tables: { readonly [Table in keyof Schema]?: readonly (keyof Schema[Table] & string)[] };
  /** Tables for which the audit log has an entry for every row. */
  readonly auditedTables?: readonly (keyof Schema)[];
  /** Tables for which the log of identities has an entry for every row. */
  readonly identityTables?: readonly (keyof Schema)[];
  /**
   * The migration steps: statements by the name of the step. Steps run in the order of their names, each once; those of
   * an extension that is added later run then. A new step has a higher number than all released steps. A released step
   * never changes.
   */
  readonly steps: Readonly<Record<string, (types: SqlTypes) => readonly string[]>>;
}

/** Lists the tables for which the audit log has an entry for every row. */
export function listAuditedTables(owners: readonly TableOwner[]): (keyof Schema)[] {
  return owners.flatMap(({ auditedTables = [] }) => auditedTables);
}

/** Lists the tables for which the log of identities has an entry for every row. */
export function listIdentityTables(owners: readonly TableOwner[]): (keyof Schema)[] {
  return owners.flatMap(({ identityTables = [] }) => identityTables);
}

/** Lists the tables of all owners, each with the columns that order its rows. */
export function listTables(owners: readonly TableOwner[]): [keyof Schema, readonly string[]][] {
  // The names are those of the schema, as the type of `tables` says.
  return owners.flatMap(({ tables }) => Object.entries(tables)) as [keyof Schema, readonly string[]][];
}
