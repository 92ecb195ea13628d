/** Stores keys and their names. */
import { sql } from "kysely";
import type { NewAuditEntry } from "../../audit/chain.ts";
import { readHead } from "../../audit/log.ts";
import type { AnyRow } from "../../database/schema.ts";
import { findDueRecords } from "../../records/due-records.ts";
import type { PageRequest } from "../../records/pages.ts";
import { type Found, openTable } from "../../records/record-table.ts";
import { defaultOrder, nameSecret, type Stored } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { findSharedComponent } from "./components.ts";
import { findStateAfter, type KeyEvent, statesAfter } from "./event.ts";
import { createGrantStore, type UseOfGrant } from "./grant-store.ts";
import { createImportStore } from "./import-store.ts";
import { type KeyQuery, toListQuery } from "./key-filter.ts";
import { indexLabels } from "./label-index.ts";
import { createNameStore } from "./name-store.ts";
import type { KeyState } from "./record.ts";
import type { KeyRecord } from "./tables.ts";
import { changes, keyTable } from "./tables.ts";

/** A key as read. A restored older record is not intact either, because the audit log has the newer state. */
export interface StoredKey extends Stored<KeyRecord> {
  /** The next use of the key is checked against this tag. */
  readonly tag: string;
  /** The state in the audit log; undefined if the log does not contain the key. */
  readonly loggedState: KeyState | undefined;
  readonly row: Readonly<AnyRow>;
}

/** A key as it was when its use was allowed. */
export interface AllowedUse {
  readonly keyId: string;
  readonly tag: string;
  /** The grant that the use relies on; undefined for a caller who needs none. */
  readonly grant: UseOfGrant | undefined;
}

/** A use of one or more keys, to record only if all keys are unchanged and each grant still allows it. */
export interface KeyUse {
  readonly keys: readonly AllowedUse[];
  /** Events to record, one entry each. */
  readonly events: readonly KeyEvent[];
}

export type KmsStore = ReturnType<typeof createKmsStore>;

export function createKmsStore(store: Store, now: () => Date = () => new Date()) {
  const keys = openTable(store, keyTable);
  const grants = createGrantStore(store, now);
  const imports = createImportStore(store);
  const recordUsesWithin = async (
    { db, audit, audited }: WriteTransaction,
    uses: readonly KeyUse[],
  ): Promise<boolean[]> => {
    const allowed = uses.flatMap((use) => use.keys);
    const found = await keys.findSome(
      "keyId",
      allowed.map(({ keyId }) => keyId),
      db,
    );
    const known = new Map(found.map((key) => [key.record.keyId, toStoredKey(key, audited())]));
    const isGranted = await grants.checkUses(
      allowed.map(({ grant }) => grant),
      db,
    );
    const isAllowed = ({ keyId, tag, grant }: AllowedUse): boolean => {
      const key = known.get(keyId);
      return key?.isIntact === true && key.tag === tag && isGranted(grant);
    };
    return uses.map((use) => {
      if (!use.keys.every(isAllowed)) return false;
      for (const event of use.events) audit(event);
      return true;
    });
  };
  const find = async (wanted: Partial<KeyRecord>, transaction?: WriteTransaction) => {
    const found = await keys.find(wanted, transaction && { db: transaction.db });
    return found && toStoredKey(found, transaction?.audited());
  };
  return {
    background: store.background,
    grants,
    imports,
    /** @param secret the secret half, which the caller wipes */
    async insert(transaction: WriteTransaction, record: KeyRecord, secret: Uint8Array): Promise<void> {
      await keys.insert(transaction, record, secret);
      const { owner, keyId, labels } = record;
      await indexLabels(transaction.db, { owner, keyId, labels }, true);
    },
    find: (keyId: string): Promise<StoredKey | undefined> => find({ keyId }),
    /** Finds one version of a name. */
    findVersion: (owner: string, name: string, version: number) => find({ owner, name, version }),
    /** Reads a key within a transaction. */
    findForChange: (transaction: WriteTransaction, keyId: string) => find({ keyId }, transaction),
    /** Finds a different usage of a stored key with the same public key; undefined if none exists. */
    async findOtherUsage(
      { db }: Pick<WriteTransaction, "db">,
      { publicKey, usage }: Pick<KeyRecord, "publicKey" | "usage">,
    ): Promise<string | undefined> {
      const found = await db
        .selectFrom("kms_keys")
        .select("key_usage")
        .where(sql<boolean>`key_usage in ('KEM', 'ENCRYPT')`)
        .where("key_usage", "!=", usage)
        .where("public_key", "=", publicKey)
        .limit(1)
        .executeTakeFirst();
      return found?.key_usage;
    },
    findSharedComponent,
    nameList: (query: KeyQuery): string => keys.nameList(toListQuery(query)),
    count: (query: KeyQuery = {}): Promise<number> => keys.count(toListQuery(query)),
    async list(request: PageRequest, query: KeyQuery = {}) {
      const page = await keys.list(request, toListQuery(query));
      return { ...page, rows: page.rows.map((found) => toStoredKey(found)) };
    },
    /** Lists the newest versions of a name, oldest first. */
    async listVersions(owner: string, name: string, limit: number): Promise<StoredKey[]> {
      const newest = await keys.listWhere(
        sql<boolean>`owner = ${owner} and key_name = ${name}`,
        sql`key_version desc`,
        limit,
      );
      return newest.reverse().map((found) => toStoredKey(found));
    },
    /** Keys whose destruction is due. */
    due: findDueRecords(keys, "destroy_at_ms"),
    /**
     * Changes a key within a transaction. A damaged record stays marked as damaged. A destroyed key loses its
     * secret.
     */
    async change(
      transaction: WriteTransaction,
      key: Stored<KeyRecord>,
      change: Partial<Pick<KeyRecord, "state" | "destroyAt" | "isPrimary" | "replacedBy">>,
    ): Promise<KeyRecord> {
      const { replacedBy } = key.record;
      const changed = await keys.update(transaction, key, { replacedBy, ...change });
      if (change.state === "DESTROYED") await transaction.eraseSecret(nameSecret(keyTable, key.record));
      return changed;
    },
    /**
     * Opens the secret half: the seed, or the whole key for SLH-DSA. The caller wipes it.
     *
     * @throws SEAL_BROKEN
     */
    openSecret: (keyId: string) => store.readSecret(nameSecret(keyTable, { keyId })),
    /**
     * Records uses, unless the key has changed since it was read. Concurrent uses share a transaction.
     *
     * @returns false if the key has changed or its grant has ended; then nothing is recorded
     */
    recordUse: store.batch(recordUsesWithin),
    /** Records uses like `recordUse`, within the transaction that stores what they produced. */
    recordUseWithin: async (transaction: WriteTransaction, use: KeyUse): Promise<boolean> =>
      (await recordUsesWithin(transaction, [use])).every(Boolean),
    /** Records a refused operation, within its caller's budget: see `Store.recordRefusal`. */
    recordRefusal: store.recordRefusal,
    ...createLogQueries(store),
    names: createNameStore(store),
  };
}

/** Reads a list of keys in chunks, in creation order. */
export async function* readKeys(
  { list }: Pick<KmsStore, "list">,
  limit: number,
  query: KeyQuery = {},
): AsyncGenerator<readonly StoredKey[]> {
  for (let after = 0, isLast = false; !isLast; ) {
    const { rows, nextPageToken } = await list({ limit, after }, query);
    yield rows;
    isLast = nextPageToken === "";
    after = Number(rows.at(-1)?.row[defaultOrder]);
  }
}

/** Creates queries about keys in the audit log. */
function createLogQueries({ reader }: Pick<Store, "reader">) {
  const selectAudited = () => reader.selectFrom("audit_entries").select("key_id");
  return {
    /** Sequence number of the newest audit log entry. */
    newestEntry: async () => (await readHead(reader)).sequence,
    /** Lists keys that were created according to the audit log, but have no record. */
    async listLost(): Promise<string[]> {
      const rows = await selectAudited()
        .where(changes)
        .where("operation", "in", ["CREATE", "IMPORT"])
        .where("key_id", "not in", (from) => from.selectFrom("kms_keys").select("kms_keys.key_id"))
        .execute();
      return rows.map((row) => row.key_id);
    },
    /** Lists keys whose state any replica changed, after one audit log entry and up to another. */
    async listChanged(after: number, last: number): Promise<string[]> {
      const rows = await selectAudited()
        .where("sequence", ">", after)
        .where("sequence", "<=", last)
        .where("outcome", "=", "OK")
        .where("operation", "in", Object.keys(statesAfter))
        .execute();
      return rows.map((row) => row.key_id);
    },
  };
}

/**
 * @param pending audit entries of the reading transaction that are not in the database yet
 */
function toStoredKey(
  { record, isIntact, row }: Found<KeyRecord>,
  pending: readonly NewAuditEntry[] = [],
): StoredKey {
  const isChange = ({ keyId, operation, outcome }: NewAuditEntry): boolean =>
    keyId === record.keyId && outcome === "OK" && Object.hasOwn(statesAfter, operation);
  const last = pending.findLast(isChange);
  const change = last ? `${last.operation} ${last.details}` : String(row.last_change ?? "");
  // Other details follow, such as the client.
  const [operation = "", detail = ""] = change.split(/,? /, 2);
  const loggedState = findStateAfter(operation, detail);
  // Records written by earlier versions of the program lack it, but the log has it.
  const loggedSuccessor = operation === "ROTATE" ? /^newKeyId=(\S+)$/.exec(detail)?.[1] : undefined;
  return {
    record: { ...record, replacedBy: record.replacedBy ?? loggedSuccessor },
    tag: String(row.record_tag),
    isIntact: isIntact && record.state === loggedState,
    loggedState,
    row,
  };
}
