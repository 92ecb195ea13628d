/** Declarations of record tables, and the names derived from them. */
import type { AliasedRawBuilder } from "kysely";
import type { Algorithm } from "../crypto/algorithms.ts";
import type { AnyRow, ColumnValue, TableOwner } from "../database/schema.ts";
import { RecordDamagedError } from "../database/store-error.ts";
import type { SealedKey } from "../secrets/sealed-keys.ts";
import type { ServiceSecrets } from "../secrets/service-secrets.ts";
import type { Columns, RecordOf } from "./columns.ts";
import type { Quota } from "./quota.ts";

/** Default tag column. */
export const defaultTagColumn = "record_tag";
/** Default last part of the name of a record's secret. */
export const defaultSecretName = "secret-key";
/** Default column that orders a table. */
export const defaultOrder = "position";

export interface TableDeclaration<C extends Columns> {
  readonly name: string;
  readonly columns: C;
  /** Properties that identify a record. */
  readonly key: readonly (keyof C & string)[];
  /** Describes a record for people, such as "user ada". */
  readonly describe: (record: RecordOf<C>) => string;
  /** Property with the record's owner; a table without an owner has no counts. */
  readonly owner?: keyof C & string;
  /** Properties by which lists can be filtered, in the order in which they appear in list names. */
  readonly filters?: readonly (keyof C & string)[];
  readonly quota?: Quota;
  /** Column that orders lists. Default: "position", which `insert` then assigns. */
  readonly orderedBy?: string;
  /** Approximate size of a listed row in JSON; by default, estimated from all its columns. */
  readonly sizeOfListed?: (row: Readonly<AnyRow>) => number;
  /** Returns whether untagged columns are consistent with tagged ones. Called only by verifications. */
  readonly isConsistent?: (record: RecordOf<C>) => boolean;
  /** Returns whether the vault has a secret of this record. Called only by verifications. */
  readonly hasSecret?: (record: RecordOf<C>) => boolean;
  /** Last part of the names of the records' secrets. Default: "secret-key". */
  readonly secretName?: string;
  /** First field of a tag. Default: the table's name. */
  readonly tagKind?: string;
  /** Default: "record_tag". */
  readonly tagColumn?: string;
  /**
   * The last columns of the tag before added ones. The tag omits them while all are empty. Declare new
   * columns as `column.added`; this list never changes.
   */
  readonly omittedAtEnd?: readonly (keyof C & string)[];
  /** Expression to select in addition to the columns. */
  readonly alsoSelect?: AliasedRawBuilder<ColumnValue, string>;
  /**
   * Returns whether a log records the end of this record, from a row with `alsoSelect`. If so, the record was
   * removed or replaced, and someone other than the server put it back. Its tag is still valid.
   */
  readonly hasEnded?: (row: Readonly<AnyRow>) => boolean;
}

/** A declaration for code that works with any table. */
// biome-ignore lint/suspicious/noExplicitAny: each table has its own columns.
export type AnyTable = TableDeclaration<any>;

/** The tables of one part of the program. */
export interface RecordTables extends TableOwner {
  /** Tables with tagged rows, except keys and blocks, which have their own verifications. */
  readonly records?: readonly AnyTable[];
  /** Secrets that belong to no record. */
  readonly serviceSecrets?: readonly ServiceSecrets[];
}

/** A record as read. */
export interface Stored<T> {
  readonly record: T;
  /** False if the record was changed outside the server. */
  readonly isIntact: boolean;
}

/** Wraps a verified record as intact. */
export function intact<T>(record: T): Stored<T> {
  return { record, isIntact: true };
}

/**
 * Returns a record that is intact.
 *
 * @throws RecordDamagedError naming it
 */
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

/** Names a list with an additional condition. */
export function nameNarrowed(list: string, narrowing: { readonly name: string } | undefined): string {
  return narrowing === undefined ? list : `${list} ${narrowing.name}`;
}

/** Names a record's secret. */
export function nameSecret<C extends Columns>(
  { name, key, secretName = defaultSecretName }: TableDeclaration<C>,
  record: Partial<RecordOf<C>>,
): string {
  return [name, ...key.map((property) => record[property]), secretName].join("/");
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
