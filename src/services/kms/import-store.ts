/** Stores imports in progress: the public wrapping key, and its secret key in the vault. */
import { sql } from "kysely";
import { findDueRecords } from "../../records/due-records.ts";
import { openTable } from "../../records/record-table.ts";
import { nameSecret } from "../../records/table-declaration.ts";
import { nameDamaged } from "../../secrets/sealed-keys.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { importTable } from "./tables.ts";

export function createImportStore(store: Store) {
  const imports = openTable(store, importTable);
  // A secret's name, split around the import ID.
  const [before, after] = nameSecret(importTable, { importId: "?" }).split("?");
  return {
    ...imports,
    /** @throws RecordDamagedError */
    findIntact: (importId: string) => imports.findIntact({ importId }),
    find: (importId: string, transaction: WriteTransaction) =>
      imports.find({ importId }, { db: transaction.db }),
    /**
     * Finds an import job of Google's interface.
     *
     * @throws RecordDamagedError
     */
    findJob: (owner: string, jobName: string, transaction?: WriteTransaction) =>
      imports.findIntact({ owner, jobName }, transaction && { db: transaction.db }),
    /**
     * Opens the seed of the wrapping key. The caller wipes it.
     *
     * @throws RecordDamagedError
     */
    openSeed: (importId: string) =>
      store.readSecret(nameSecret(importTable, { importId })).catch((error: unknown) => {
        throw nameDamaged(`import token ${importId}`, error);
      }),
    /** Erases the secret key of an import job whose record stays, for Google's lists. */
    eraseSecret: ({ eraseSecret }: WriteTransaction, importId: string) =>
      eraseSecret(nameSecret(importTable, { importId })),
    /** Expired import tokens, and expired import jobs that still have their secret key. */
    due: findDueRecords(
      imports,
      "expires_at_ms",
      sql`(job_name = '' or exists (select 1 from sealed_secrets where identity = ${before} || import_id || ${after}))`,
    ),
  };
}
