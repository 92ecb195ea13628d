/** The tables of a database, as their owners declare them. */

/**
 * Every table by its name. It is empty here: the owner of a table adds it with `declare module`, next to the columns.
 * Times are milliseconds since 1970, UTC; hashes and tags are lower-case hexadecimal.
 */
// biome-ignore lint/suspicious/noEmptyInterface: owners add to it, which only an interface allows.
export interface Schema {}

/** The SQL of types that databases name differently. */
export interface SqlTypes {
  readonly bytes: string;
  /** Of up to 64 bits. */
  readonly integer: string;
}

/** The tables of one part of the program. */
export interface TableOwner {
  /** The columns that order the rows of each table; a table comes after those that it builds on. */
  readonly tables: { readonly [Table in keyof Schema]?: readonly (keyof Schema[Table] & string)[] };
  /** Tables whose every row the audit log tells of. */
  readonly auditedTables?: readonly (keyof Schema)[];
  /**
   * The steps to the tables, as statements by the name of the step. Steps run in the order of their names, each once:
   * a new one has a higher number than all that were released, and one that was released never changes.
   */
  readonly steps: Readonly<Record<string, (types: SqlTypes) => readonly string[]>>;
}

/** The tables whose every row the audit log tells of. */
export function listAuditedTables(owners: readonly TableOwner[]): (keyof Schema)[] {
  return owners.flatMap(({ auditedTables = [] }) => auditedTables);
}

/** The tables of all owners, each with the columns that order its rows. */
export function listTables(owners: readonly TableOwner[]): [keyof Schema, readonly string[]][] {
  // The names are those of the schema, as the type of `tables` says.
  return owners.flatMap(({ tables }) => Object.entries(tables)) as [keyof Schema, readonly string[]][];
}
