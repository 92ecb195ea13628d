import type { NewAuditEntry } from "../../audit/chain.ts";
import { readHead } from "../../audit/log.ts";
import type { Principal } from "../../records/ownership.ts";
import type { PageRequest } from "../../records/pages.ts";
import { type Found, openTable } from "../../records/record-table.ts";
import { nameList, nameSecret, type Stored } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { KeyRecord, KeyState } from "./record.ts";
import { changes, keyTable } from "./tables.ts";

/** The operations that the audit log records. */
export type Operation = "CREATE" | "SIGN" | "VERIFY" | "ROTATE" | "DESTROY" | "ENCAPSULATE" | "DECAPSULATE";

/** A key as it was read. A restored older record is not intact either, because the audit log has the newer state. */
export interface StoredKey extends Stored<KeyRecord> {
  /** The next use of the key is checked against it. */
  readonly tag: string;
  /** The state in the audit log; undefined if the log has no such key. */
  readonly loggedState: KeyState | undefined;
  /** The key that replaced it, once it is rotated. */
  readonly replacedBy: string | undefined;
}

/** An operation that was done or refused. */
export interface KeyEvent extends NewAuditEntry {
  readonly operation: Operation;
}

/** A use of a key, to record only if the key has not changed since. */
export interface KeyUse {
  readonly keyId: string;
  readonly tag: string;
  /** Each becomes one entry. */
  readonly events: readonly KeyEvent[];
}

/** Filters of a list of keys; empty for all. */
export interface KeyFilter {
  readonly state: string;
  readonly algorithm: string;
}

/** Names a list of keys, for page tokens. */
export function keyListName({ state, algorithm }: KeyFilter): string {
  return nameList(keyTable, { state, algorithm });
}

/** The keys of the service. */
export type KmsStore = ReturnType<typeof createKmsStore>;

/** Creates the store of the key service on top of the shared store. */
export function createKmsStore(store: Store) {
  const keys = openTable(store, keyTable);
  const recordUses = store.batch(async ({ db, audit, audited }, uses: readonly KeyUse[]) => {
    const found = await keys.findSome(
      "keyId",
      uses.map(({ keyId }) => keyId),
      db,
    );
    const known = new Map(found.map((key) => [key.record.keyId, toStoredKey(key, audited())]));
    return uses.map(({ keyId, tag, events }) => {
      const key = known.get(keyId);
      if (key === undefined || !key.isIntact || key.tag !== tag) return false;
      for (const event of events) audit(event);
      return true;
    });
  });
  const recordRefusals = store.batch(async ({ audit }, events: readonly KeyEvent[]) =>
    events.map((event) => audit(event)),
  );
  const selectAudited = () => store.reader.selectFrom("audit_entries").select("key_id");
  return {
    count: keys.count,
    insert: keys.insert,
    async find(keyId: string): Promise<StoredKey | undefined> {
      const found = await keys.find({ keyId });
      return found && toStoredKey(found);
    },
    /** Reads a key within a transaction. */
    async findForChange({ db, audited }: WriteTransaction, keyId: string): Promise<StoredKey | undefined> {
      const found = await keys.find({ keyId }, { db });
      return found && toStoredKey(found, audited());
    },
    async list(request: PageRequest, principal: Principal, filter: KeyFilter) {
      const page = await keys.list(request, principal, { ...filter });
      return { ...page, rows: page.rows.map((found) => toStoredKey(found)) };
    },
    /**
     * Changes the state of a key, within a transaction. A destroyed key loses its secret half. A damaged record stays
     * marked as damaged.
     */
    async changeState(transaction: WriteTransaction, key: StoredKey, state: KeyState): Promise<void> {
      await keys.update(transaction, key, { state });
      if (state === "DESTROYED") await transaction.eraseSecret(nameSecret(keyTable, key.record));
    },
    /** Opens the secret half: the seed, or the whole key for SLH-DSA. The caller wipes it. @throws SEAL_BROKEN */
    openSecret: (keyId: string) => store.readSecret(nameSecret(keyTable, { keyId })),
    /**
     * Records uses, unless the key has changed since it was read. Concurrent uses share a transaction.
     *
     * @returns false if the key has changed; then nothing is recorded.
     */
    recordUse: (use: KeyUse): Promise<boolean> => recordUses(use),
    /** Records a refused operation. */
    recordRefusal: (event: KeyEvent): Promise<void> => recordRefusals(event),
    /** The number of the newest entry of the audit log. */
    newestEntry: async () => (await readHead(store.reader)).sequence,
    /** Lists keys that were created according to the audit log, but have no record. */
    async listLost(): Promise<string[]> {
      const rows = await selectAudited()
        .where(changes)
        .where("operation", "=", "CREATE")
        .where("key_id", "not in", (from) => from.selectFrom("kms_keys").select("kms_keys.key_id"))
        .execute();
      return rows.map((row) => row.key_id);
    },
    /** Lists keys that any replica rotated or destroyed, from after one entry of the audit log up to another. */
    async listRetired(after: number, last: number): Promise<string[]> {
      const rows = await selectAudited()
        .where("sequence", ">", after)
        .where("sequence", "<=", last)
        .where("operation", "in", ["ROTATE", "DESTROY"] satisfies Operation[])
        .execute();
      return rows.map((row) => row.key_id);
    },
  };
}

const statesAfter: Readonly<Record<string, KeyState>> = {
  CREATE: "ACTIVE",
  ROTATE: "ROTATED",
  DESTROY: "DESTROYED",
};

/** @param pending audit entries of the reading transaction that are not in the database yet */
function toStoredKey(
  { record, isIntact, row }: Found<KeyRecord>,
  pending: readonly NewAuditEntry[] = [],
): StoredKey {
  const isChange = ({ keyId, operation, outcome }: NewAuditEntry): boolean =>
    keyId === record.keyId && outcome === "OK" && Object.hasOwn(statesAfter, operation);
  const last = pending.findLast(isChange);
  const [operation = "", details = ""] = last
    ? [last.operation, last.details]
    : String(row.last_change ?? "").split(" ");
  const loggedState = statesAfter[operation];
  return {
    record,
    tag: String(row.record_tag),
    isIntact: isIntact && record.state === loggedState,
    loggedState,
    replacedBy: operation === "ROTATE" ? /^newKeyId=(\S+)$/.exec(details)?.[1] : undefined,
  };
}
