/** The declaration of a table of records, and the names that derive from it. */
import type { AliasedRawBuilder, Kysely } from "kysely";
import type { Algorithm } from "../crypto/algorithms.ts";
import type { Schema, TableOwner } from "../database/schema.ts";
import { RecordDamagedError } from "../database/store-error.ts";
import type { SealedKey } from "../secrets/sealed-keys.ts";
import type { AnyRow, Columns, ColumnValue, RecordOf } from "./columns.ts";
import type { Quota } from "./quota.ts";

/** The column of tags, unless the table names another. */
export const defaultTagColumn = "record_tag";
/** The column that orders a table, unless it names another. */
export const defaultOrder = "position";

/** The declaration of a table. */
export interface TableDeclaration<C extends Columns> {
  readonly name: string;
  readonly columns: C;
  /** The values that identify a record. */
  readonly key: readonly (keyof C & string)[];
  /** Names a record for a person, such as "user ada". */
  readonly describe: (record: RecordOf<C>) => string;
  /** The value that names the record's owner; a table without an owner has no counts. */
  readonly owner?: keyof C & string;
  /** The values that lists can be filtered by, in their order in the names of lists. */
  readonly filters?: readonly (keyof C & string)[];
  readonly quota?: Quota;
  /** The column that orders lists; "position" if omitted, which `insert` then assigns. */
  readonly orderedBy?: string;
  /** The approximate size of a listed row in JSON; that of all its columns if omitted. */
  readonly sizeOfListed?: (row: Readonly<AnyRow>) => number;
  /** Tells whether the columns that are not in the tag follow from those that are; checked by verifications only. */
  readonly isConsistent?: (record: RecordOf<C>) => boolean;
  /** The first field of a tag; the name of the table if omitted. */
  readonly tagKind?: string;
  /** "record_tag" if omitted. */
  readonly tagColumn?: string;
  /**
   * The last columns of the tag before added ones. The tag omits them while all of them are empty. A new column is
   * `column.added` instead, and this list never changes.
   */
  readonly omittedAtEnd?: readonly (keyof C & string)[];
  /** An expression to select in addition to the columns. */
  readonly alsoSelect?: AliasedRawBuilder<ColumnValue, string>;
  /**
   * Tells from a row with `alsoSelect` that a log has the end of the record: it was removed or replaced, and someone else
   * than the server put it back. Its tag is still valid.
   */
  readonly hasEnded?: (row: Readonly<AnyRow>) => boolean;
}

/** A declaration for code that reads any table. */
// biome-ignore lint/suspicious/noExplicitAny: each table has columns of its own.
export type AnyTable = TableDeclaration<any>;

/** The tables of one part of the program. */
export interface RecordTables extends TableOwner {
  /** Those whose rows have tags, but for keys and blocks, which have separate verifications. */
  readonly records?: readonly AnyTable[];
}

/** A record as it was read. */
export interface Stored<T> {
  readonly record: T;
  /** False if it was changed outside of the server. */
  readonly isIntact: boolean;
}

/** Marks a verified record as intact. */
export function intact<T>(record: T): Stored<T> {
  return { record, isIntact: true };
}

/** Returns a record that is intact. @throws RecordDamagedError naming it */
export function requireIntact<T>(stored: Stored<T>, name: string): T {
  if (stored.isIntact) return stored.record;
  throw new RecordDamagedError(name);
}

/** Values to filter a list by; an empty value matches all. */
export type Filters<C extends Columns> = { readonly [P in keyof C]?: string };

/** Names a list with its filters, for page tokens and counts. */
export function nameList<C extends Columns>(
  { name, filters = [] }: TableDeclaration<C>,
  values: Filters<C> = {},
): string {
  const parts = filters.filter((filter) => values[filter]).map((filter) => `${filter}=${values[filter]}`);
  return [name, ...parts].join(" ");
}

/** Names a list that a further condition narrows. */
export function nameNarrowed(list: string, narrowing: { readonly name: string } | undefined): string {
  return narrowing === undefined ? list : `${list} ${narrowing.name}`;
}

/** Names the sealed secret key of a record. */
export function nameSecret<C extends Columns>(
  { name, key }: TableDeclaration<C>,
  record: Partial<RecordOf<C>>,
): string {
  return [name, ...key.map((property) => record[property]), "secret-key"].join("/");
}

/** Describes the sealed secret key of a record with a public key. */
export function describeSealedKey<C extends Columns>(
  declaration: TableDeclaration<C>,
  algorithm: Algorithm,
  record: RecordOf<C> & { readonly publicKey: Uint8Array },
): SealedKey {
  const identity = nameSecret(declaration, record);
  return { record: declaration.describe(record), identity, algorithm, publicKey: record.publicKey };
}

/**
 * Gives access to tables by names that are known at run time only. Kysely derives the type of a table from its literal
 * name, which a function for all tables does not have. The declaration's columns match the schema, which derives from
 * them.
 */
export function anyTable(db: Kysely<Schema>): Kysely<Record<string, AnyRow>> {
  return db as unknown as Kysely<Record<string, AnyRow>>;
}
