/** Verifies that no record of a table was changed outside the server. */
import { readChunks } from "../database/read-rows.ts";
import { type Columns, isAsStored } from "./columns.ts";
import { countRecords } from "./record-counts.ts";
import { openTable, type RecordStore } from "./record-table.ts";
import type { AnyTable, TableDeclaration } from "./table-declaration.ts";

/** Rows to read at once. */
const chunkRows = 500;

export interface RecordsVerification {
  readonly checked: number;
  /** Names of records that were changed outside the server. */
  readonly damaged: readonly string[];
}

/** Finds records that do not match their tags, and rows that only look like such records. */
export async function verifyRecords(
  store: RecordStore,
  declarations: readonly AnyTable[],
): Promise<RecordsVerification> {
  let checked = 0;
  const damaged: string[] = [];
  for (const declaration of declarations)
    for await (const { record, row, isIntact } of readAll(store, declaration)) {
      checked += 1;
      const isAsWritten =
        isIntact && isAsStored(declaration.columns, row) && declaration.isConsistent?.(record) !== false;
      if (!isAsWritten) damaged.push(declaration.describe(record));
    }
  return { checked, damaged };
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

/** Reads all rows of a table in key order. */
async function* readAll<C extends Columns>(store: RecordStore, declaration: TableDeclaration<C>) {
  const { key, columns } = declaration;
  const { readRow, select } = openTable(store, declaration);
  const keyColumns = key.map((property) => columns[property]?.name ?? property);
  for await (const rows of readChunks(select(store.reader), keyColumns, chunkRows)) yield* rows.map(readRow);
}
