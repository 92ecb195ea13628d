/** Verifies that no record of a table was changed outside the server, and that none lost its secret. */
import { sql } from "kysely";
import { readChunks } from "../database/read-rows.ts";
import { type Columns, isAsStored } from "./columns.ts";
import { countRecords } from "./record-counts.ts";
import { openTable, type RecordStore } from "./record-table.ts";
import { type AnyTable, defaultSecretName, type TableDeclaration } from "./table-declaration.ts";

/** Rows to read at once. */
const chunkRows = 500;

export interface RecordsVerification {
  readonly checked: number;
  /** Names of records that were changed outside the server. */
  readonly damaged: readonly string[];
}

export interface TablesVerification extends RecordsVerification {
  /** Names of records whose secret is missing. */
  readonly withoutSecret: readonly string[];
  /** Names of unchanged records whose end a log records. */
  readonly restored: readonly string[];
}

/**
 * Finds records that do not match their tags, rows that only look like such records, and records without their secret.
 */
export async function verifyRecords(
  store: RecordStore,
  declarations: readonly AnyTable[],
): Promise<TablesVerification> {
  let checked = 0;
  const damaged: string[] = [];
  const withoutSecret: string[] = [];
  const restored: string[] = [];
  for (const declaration of declarations)
    for await (const { record, row, isIntact, isRestored } of readRecords(store, declaration)) {
      checked += 1;
      const isAsWritten =
        isIntact && isAsStored(declaration.columns, row) && declaration.isConsistent?.(record) !== false;
      if (!isAsWritten) (isRestored ? restored : damaged).push(declaration.describe(record));
      else if (declaration.hasSecret?.(record) && Number(row.secrets) === 0)
        withoutSecret.push(declaration.describe(record));
    }
  return { checked, damaged, withoutSecret, restored };
}

/** Finds lists whose stored count, on which quotas rely, differs from the number of rows. */
export async function verifyCounts(
  { reader }: Pick<RecordStore, "reader">,
  declarations: readonly AnyTable[],
): Promise<string[]> {
  const wrong: string[] = [];
  for (const declaration of declarations) wrong.push(...(await countRecords(declaration).verify(reader)));
  return wrong;
}

/** Reads all rows of a table in key order, each with the number of its secrets, because a server may remove both. */
export async function* readRecords<C extends Columns>(store: RecordStore, declaration: TableDeclaration<C>) {
  const { name, key, columns, hasSecret, secretName = defaultSecretName } = declaration;
  const { readRow, select } = openTable(store, declaration);
  const keyColumns = key.map((property) => columns[property]?.name ?? property);
  const identity = sql.join(
    [sql.lit(name), ...keyColumns.map((column) => sql.ref(`${name}.${column}`)), sql.lit(secretName)],
    sql` || '/' || `,
  );
  const secrets = sql<number>`(select count(*) from sealed_secrets where identity = ${identity})`.as(
    "secrets",
  );
  const query = select(store.reader).$if(hasSecret !== undefined, (all) => all.select(secrets));
  for await (const rows of readChunks(query, keyColumns, chunkRows)) yield* rows.map(readRow);
}
