/** What the key service keeps: records of keys, and their sealed secret halves. The audit log knows their states. */
import { sql } from "kysely";
import type { NewAuditEntry } from "../../audit/chain.ts";
import { readHead } from "../../audit/log.ts";
import { bytes, type PositionColumn, type RowOf, type TagColumn, text, time } from "../../records/columns.ts";
import type { Principal } from "../../records/ownership.ts";
import { type Page, type PageRequest, sizeInJson } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import {
  type Found,
  nameList,
  openTable,
  type Stored,
  type TableDeclaration,
} from "../../records/record-table.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import type { KeyAlgorithm, KeyRecord, KeyState, KeyUsage } from "./record.ts";

/** What the audit log can say that was done. */
export type Operation = "CREATE" | "SIGN" | "VERIFY" | "ROTATE" | "DESTROY" | "ENCAPSULATE" | "DECAPSULATE";

/** A key as it was read. An older record that was put back is not intact either: the audit log knows its state. */
export interface StoredKey extends Stored<KeyRecord> {
  /** What its next use is checked against. */
  readonly tag: string;
  /** The state that the audit log tells of; undefined if it does not know the key. */
  readonly loggedState: KeyState | undefined;
  /** The key that took its place, once it is rotated. */
  readonly replacedBy: string | undefined;
}

/** One thing that was done, or refused. */
export interface KeyEvent {
  readonly keyId: string;
  readonly operation: Operation;
  readonly user: string;
  readonly outcome: "OK" | "REFUSED";
  readonly details: string;
}

/** A use of a key that is to be recorded if the key is still the one that was used. */
export interface KeyUse {
  readonly keyId: string;
  readonly tag: string;
  /** One entry each. */
  readonly events: readonly KeyEvent[];
}

/** Filters of a list of keys; empty for all. */
export interface KeyFilter {
  readonly state: string;
  readonly algorithm: string;
}

/** The keys of the service. */
export interface KmsStore {
  find(keyId: string): Promise<StoredKey | undefined>;
  /** Reads a key within a transaction. */
  findForChange(transaction: WriteTransaction, keyId: string): Promise<StoredKey | undefined>;
  list(request: PageRequest, filter: KeyFilter, principal: Principal): Promise<Page<StoredKey>>;
  count(filter: KeyFilter, principal?: Principal): Promise<number>;
  /** Keeps a new key, within a transaction. @param secret the caller wipes it @throws QuotaExceededError */
  insert(transaction: WriteTransaction, record: KeyRecord, secret: Uint8Array): Promise<void>;
  /**
   * Moves a key on in its life, within a transaction. What is destroyed loses its secret half. A record that somebody
   * changed stays marked as changed.
   */
  changeState(transaction: WriteTransaction, key: StoredKey, state: KeyState): Promise<void>;
  /** Lists keys that were made, as the audit log knows, and have no record. */
  listLost(): Promise<string[]>;
  /** Opens the secret half: the seed, for SLH-DSA the whole key. The caller wipes it. @throws SEAL_BROKEN */
  openSecret(keyId: string): Promise<Uint8Array | undefined>;
  /**
   * Records uses, unless the key was changed since it was read; uses of one moment share a transaction.
   *
   * @returns false if it was changed; then nothing is recorded.
   */
  recordUse(use: KeyUse): Promise<boolean>;
  /** Records what was refused. */
  recordRefusal(event: KeyEvent): Promise<void>;
  /** The number of the newest entry of the audit log. */
  newestEntry(): Promise<number>;
  /** Keys that were rotated or destroyed, by whomever, after one entry of the audit log and up to another. */
  listRetired(after: number, last: number): Promise<string[]>;
}

const columns = {
  keyId: text("key_id"),
  alias: text("alias"),
  algorithm: text<"algorithm", KeyAlgorithm>("algorithm"),
  usage: text<"key_usage", KeyUsage>("key_usage"),
  state: text<"key_state", KeyState>("key_state"),
  publicKey: bytes("public_key"),
  owner: text("owner"),
  createdAt: time("created_at_ms"),
};

declare module "../../database/schema.ts" {
  interface Schema {
    kms_keys: RowOf<typeof columns> & PositionColumn & TagColumn;
  }
}

/** What entries change the state of a key; the condition is that of their index: see migration.ts. */
const changes = sql<boolean>`outcome = 'OK' and operation in ('CREATE', 'ROTATE', 'DESTROY')`;

/** Counts the keys of an owner, also those that are ROTATED or DESTROYED: their records stay. */
export const keyQuota = recordQuota("kms_keys", "keys");

const keyTable: TableDeclaration<typeof columns> = {
  name: "kms_keys",
  columns,
  key: ["keyId"],
  owner: "owner",
  filters: ["state", "algorithm"],
  quota: keyQuota,
  describe: ({ keyId }) => `key ${keyId}`,
  // A list has no public keys.
  sizeOfListed: ({ public_key: _, ...row }) => sizeInJson(row),
  // The newest entry that tells of its state, in one statement with the record: both are as they are at one moment.
  alsoSelect: sql<string | null>`(
    select operation || ' ' || details from audit_entries
    where audit_entries.key_id = kms_keys.key_id and ${changes} order by sequence desc limit 1
  )`.as("last_change"),
};

/** Names a list of keys, for page tokens. */
export function keyListName({ state, algorithm }: KeyFilter): string {
  return nameList("kms_keys", { state, algorithm });
}

/** Names the sealed secret half of a key. */
function nameSecret(keyId: string): string {
  return `kms_keys/${keyId}/secret-key`;
}

/** Makes the store of the key service on the store of all. */
export function createKmsStore(store: Store): KmsStore {
  const keys = openTable(store, keyTable);
  const recordUses = store.batch(async ({ db, audit, audited }, uses: readonly KeyUse[]) => {
    const wanted = uses.map(({ keyId }) => keyId);
    const found = await keys.findSome("keyId", wanted, db);
    const byId = new Map(found.map((key) => [key.record.keyId, toStoredKey(key, audited())]));
    return uses.map(({ keyId, tag, events }) => {
      const key = byId.get(keyId);
      if (key === undefined || !key.isIntact || key.tag !== tag) return false;
      for (const event of events) audit(event);
      return true;
    });
  });
  const recordRefusals = store.batch(async ({ audit }, events: readonly KeyEvent[]) =>
    events.map((event) => audit(event)),
  );
  return {
    async find(keyId) {
      const found = await keys.find({ keyId });
      return found && toStoredKey(found);
    },
    async findForChange({ db, audited }, keyId) {
      const found = await keys.find({ keyId }, db);
      return found && toStoredKey(found, audited());
    },
    async list(request, { state, algorithm }, principal) {
      const page = await keys.list(request, { state, algorithm }, principal);
      return { ...page, rows: page.rows.map((found) => toStoredKey(found)) };
    },
    count: ({ state, algorithm }, principal) => keys.count({ state, algorithm }, principal),
    async insert(transaction, record, secret) {
      await keys.insert(transaction, record);
      await transaction.putSecret(nameSecret(record.keyId), secret);
    },
    async changeState(transaction, key, state) {
      await keys.update(transaction, key, { state });
      if (state === "DESTROYED") await transaction.eraseSecret(nameSecret(key.record.keyId));
    },
    async listLost() {
      const rows = await store.reader
        .selectFrom("audit_entries")
        .select("key_id")
        .where(changes)
        .where("operation", "=", "CREATE")
        .where("key_id", "not in", (from) => from.selectFrom("kms_keys").select("kms_keys.key_id"))
        .execute();
      return rows.map((row) => row.key_id);
    },
    openSecret: (keyId) => store.readSecret(nameSecret(keyId)),
    recordUse: (use) => recordUses(use),
    recordRefusal: (event) => recordRefusals(event),
    newestEntry: async () => (await readHead(store.reader)).sequence,
    async listRetired(after, last) {
      const rows = await store.reader
        .selectFrom("audit_entries")
        .select("key_id")
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

/** @param pending what the transaction that reads it put into the audit log, and the database does not have yet */
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
