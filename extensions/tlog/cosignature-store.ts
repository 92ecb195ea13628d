/** Stores witness cosignatures: the newest per checkpoint and key. */
import type { Kysely } from "kysely";
import type { Schema } from "../../src/database/schema.ts";
import type { Store } from "../../src/store/store.ts";
import type { NoteSignature } from "./note.ts";
import type { TlogCosignaturesTable } from "./tables.ts";
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
export function createCosignatureStore(
  store: Pick<Store, "reader" | "tagRecord" | "isTagged">,
  log: string,
  witnesses: readonly VerifierKey[],
) {
  const trusted = witnesses.map((key) => ({ key, keyId: computeKeyId(key) }));
  const listFields = (row: Omit<TlogCosignaturesTable, "record_tag">) => [
    "tlog_cosignatures",
    row.log,
    row.tree_size,
    row.witness,
    row.key_id,
    row.signature,
  ];
  const readRow = (row: TlogCosignaturesTable): Cosignature[] => {
    const witness = trusted.find(({ key, keyId }) => key.name === row.witness && keyId === row.key_id);
    // A damaged cosignature is useless, but must not block the checkpoint.
    if (witness === undefined || !store.isTagged(listFields(row), row.record_tag)) return [];
    const { key, keyId } = witness;
    const timestamp = Number(Buffer.from(row.signature).readBigUInt64BE());
    return [{ key, keyId, keyName: key.name, signature: row.signature, timestamp }];
  };
  const list = async (size: number, db: Kysely<Schema> = store.reader): Promise<Cosignature[]> => {
    const rows = await db
      .selectFrom("tlog_cosignatures")
      .selectAll()
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
      const row = { log, tree_size: size, witness: keyName, key_id: keyId, signature };
      await db
        .insertInto("tlog_cosignatures")
        .values({ ...row, record_tag: store.tagRecord(listFields(row)) })
        .execute();
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
