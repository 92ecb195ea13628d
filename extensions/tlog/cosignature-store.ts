/** Stores witness cosignatures: the newest per checkpoint and key. */
import type { Kysely } from "kysely";
import { type AnyRow, anyTable, type Schema } from "../../src/database/schema.ts";
import { openTable, type RecordStore } from "../../src/records/record-table.ts";
import type { NoteSignature } from "./note.ts";
import { cosignatureTable } from "./tables.ts";
import { computeKeyId, type VerifierKey } from "./verifier-keys.ts";

/** A trusted witness's cosignature. */
export interface Cosignature extends NoteSignature {
  readonly key: VerifierKey;
  /** Seconds since 1970, as claimed by the witness. */
  readonly timestamp: number;
}

/** One log's cosignatures. */
export type CosignatureStore = ReturnType<typeof createCosignatureStore>;

/**
 * Creates a log's cosignature store.
 *
 * @param witnesses the trusted keys; cosignatures by other keys are not shown
 */
export function createCosignatureStore(store: RecordStore, log: string, witnesses: readonly VerifierKey[]) {
  const trusted = witnesses.map((key) => ({ key, keyId: computeKeyId(key) }));
  const table = openTable(store, cosignatureTable);
  const readRow = (row: Readonly<AnyRow>): Cosignature[] => {
    const { record, isIntact } = table.readRow(row);
    const { signature } = record;
    const witness = trusted.find(({ key, keyId }) => key.name === record.witness && keyId === record.keyId);
    // A damaged cosignature is useless, but must not block the checkpoint.
    if (witness === undefined || !isIntact) return [];
    const { key, keyId } = witness;
    const timestamp = Number(Buffer.from(signature).readBigUInt64BE());
    return [{ key, keyId, keyName: key.name, signature, timestamp }];
  };
  const list = async (size: number, db: Kysely<Schema> = store.reader): Promise<Cosignature[]> => {
    const rows = await table
      .select(db)
      .where("log", "=", log)
      .where("tree_size", "=", size)
      .orderBy("witness")
      .orderBy("key_id")
      .execute();
    return rows.flatMap(readRow);
  };
  return {
    list,
    /** Adds a cosignature within a transaction, unless a newer one by the same key exists. */
    async add(db: Kysely<Schema>, size: number, { keyName, keyId, signature, timestamp }: Cosignature) {
      const known = (await list(size, db)).find((one) => one.keyName === keyName && one.keyId === keyId);
      if (known !== undefined && known.timestamp >= timestamp) return;
      await db
        .deleteFrom("tlog_cosignatures")
        .where("log", "=", log)
        .where("tree_size", "=", size)
        .where("witness", "=", keyName)
        .where("key_id", "=", keyId)
        .execute();
      const row = table.toTaggedRow({ log, size, witness: keyName, keyId, signature });
      await anyTable(db).insertInto(cosignatureTable.name).values(row).execute();
    },
    /** Lists the sizes of checkpoints with at least this many rows, newest first: candidates for `list`. */
    async listCosignedSizes(atLeast: number, limit: number): Promise<number[]> {
      const rows = await store.reader
        .selectFrom("tlog_cosignatures")
        .select("tree_size")
        .where("log", "=", log)
        .groupBy("tree_size")
        .having(({ fn }) => fn.countAll<number>(), ">=", atLeast)
        .orderBy("tree_size", "desc")
        .limit(limit)
        .execute();
      return rows.map(({ tree_size }) => tree_size);
    },
  };
}
