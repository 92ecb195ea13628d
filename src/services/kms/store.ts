/** What the key service keeps: records, their sealed secret halves, and what was done with them. */
import { type Kysely, sql } from "kysely";
import type { NewAuditEntry } from "../../audit/chain.ts";
import { readHead } from "../../audit/log.ts";
import { readTime } from "../../database/row-values.ts";
import type { KmsKeysTable, Schema } from "../../database/schema.ts";
import { changeCounts, readCount, resetCounts } from "../../records/list-counts.ts";
import { countedLists, listSeenBy, type Principal, systemPrincipal } from "../../records/ownership.ts";
import { cutPage, type Page, type PageRequest, sizeInJson } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { recordQuota } from "../../records/quota.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import type { KeyAlgorithm, KeyRecord, KeyState, KeyUsage } from "./record.ts";

/** What the audit log can say that was done. */
export type Operation = "CREATE" | "SIGN" | "VERIFY" | "ROTATE" | "DESTROY" | "ENCAPSULATE" | "DECAPSULATE";

/** A key as it was read, with the tag that its next use is checked against. */
export interface StoredKey {
  readonly record: KeyRecord;
  readonly tag: string;
  /** False if somebody changed the record behind our back, or put an older one back: the audit log knows its state. */
  readonly isIntact: boolean;
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
  list(request: PageRequest, filter: KeyFilter, principal: Principal): Promise<Page<StoredKey>>;
  count(filter: KeyFilter, principal?: Principal): Promise<number>;
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

/** Names the sealed secret half of a key. */
function nameSecret(keyId: string): string {
  return `kms_keys/${keyId}/secret-key`;
}

/** Names a list of keys, for page tokens. */
export function keyListName({ state, algorithm }: KeyFilter): string {
  const filters = [state && `state=${state}`, algorithm && `algorithm=${algorithm}`];
  return ["kms_keys", ...filters.filter((text) => text !== "")].join(" ");
}

/** Counts the keys of an owner, also those that are ROTATED or DESTROYED: their records stay. */
export const keyQuota = recordQuota("kms_keys", "keys");

/** Makes the store of the key service on the store of all. */
export function createKmsStore(store: Store): KmsStore {
  const recordUses = store.batch(async (transaction, uses: readonly KeyUse[]) => {
    const { db, audit } = transaction;
    const keyIds = [...new Set(uses.map(({ keyId }) => keyId))];
    const rows = await selectKeys(db).where("key_id", "in", keyIds).execute();
    const keys = new Map(rows.map((row) => [row.key_id, readRow(store, row, transaction.audited())]));
    return uses.map(({ keyId, tag, events }) => {
      const key = keys.get(keyId);
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
      const row = await selectKeys(store.reader).where("key_id", "=", keyId).executeTakeFirst();
      return row && readRow(store, row);
    },

    async list(request, filter, principal) {
      let query = selectKeys(store.reader).where("position", ">", request.after);
      if (principal.owner !== undefined) query = query.where("owner", "=", principal.owner);
      if (filter.state !== "") query = query.where("key_state", "=", filter.state);
      if (filter.algorithm !== "") query = query.where("algorithm", "=", filter.algorithm);
      const rows = await query
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const list = listSeenBy(principal, keyListName(filter));
      const page = cutPage(rows, request, list, ({ position }) => position, sizeOfListed);
      return { ...page, rows: page.rows.map((row) => readRow(store, row)) };
    },

    count: (filter, principal = systemPrincipal) =>
      readCount(store.reader, listSeenBy(principal, keyListName(filter))),

    async listLost() {
      const rows = await store.reader
        .selectFrom("audit_entries")
        .select("key_id")
        .where(changes)
        .where("operation", "=", "CREATE")
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom("kms_keys")
                .select("key_id")
                .whereRef("kms_keys.key_id", "=", "audit_entries.key_id"),
            ),
          ),
        )
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

/** Reads a key within a transaction. */
export async function findForChange(
  store: Store,
  { db, audited }: WriteTransaction,
  keyId: string,
): Promise<StoredKey | undefined> {
  const row = await selectKeys(db).where("key_id", "=", keyId).executeTakeFirst();
  return row && readRow(store, row, audited());
}

/** Keeps a new key, within a transaction. @param secret sealed; the caller wipes it @throws QuotaExceeded */
export async function insertKey(
  store: Store,
  { db, putSecret, requireRoom }: WriteTransaction,
  record: KeyRecord,
  secret: Uint8Array,
): Promise<void> {
  await requireRoom(keyQuota, record.owner);
  await db
    .insertInto("kms_keys")
    .values({
      position: await nextPosition(db, "kms_keys"),
      key_id: record.keyId,
      alias: record.alias,
      algorithm: record.algorithm,
      key_usage: record.usage,
      key_state: record.state,
      public_key: record.publicKey,
      owner: record.owner,
      created_at_ms: record.createdAt.getTime(),
      record_tag: store.tagRecord(listTaggedFields(record)),
    })
    .execute();
  await changeCounts(db, listCountedLists(record), 1);
  await putSecret(nameSecret(record.keyId), secret);
}

/**
 * Moves a key on in its life, within a transaction. What is destroyed loses its secret half. A record that somebody
 * changed stays marked as changed.
 */
export async function changeState(
  store: Store,
  { db, eraseSecret }: WriteTransaction,
  { record, tag, isIntact }: StoredKey,
  state: KeyState,
): Promise<void> {
  const changed = { ...record, state };
  await db
    .updateTable("kms_keys")
    .set({ key_state: state, record_tag: isIntact ? store.tagRecord(listTaggedFields(changed)) : tag })
    .where("key_id", "=", record.keyId)
    .execute();
  if (isIntact) {
    await changeCounts(db, listCountedLists(record), -1);
    await changeCounts(db, listCountedLists(changed), 1);
  } else await recount(db);
  if (state === "DESTROYED") await eraseSecret(nameSecret(record.keyId));
}

/** Counts all keys anew: in which lists a changed record was before it was changed, nobody knows. */
async function recount(db: WriteTransaction["db"]): Promise<void> {
  const groups = await db
    .selectFrom("kms_keys")
    .select(["key_state", "algorithm", "owner", (row) => row.fn.countAll<number>().as("count")])
    .groupBy(["key_state", "algorithm", "owner"])
    .execute();
  const counts = new Map<string, number>();
  for (const { key_state: state, algorithm, owner, count } of groups)
    for (const list of listCountedLists({ state, algorithm, owner }))
      counts.set(list, (counts.get(list) ?? 0) + count);
  await resetCounts(db, keyListName({ state: "", algorithm: "" }), counts);
}

/** The lists that a key is in: all, those of its state, of its algorithm, and of both; each also of its owner. */
function listCountedLists({ state, algorithm, owner }: KeyFilter & Pick<KeyRecord, "owner">): string[] {
  const lists = ["", state].flatMap((one) =>
    ["", algorithm].map((other) => keyListName({ state: one, algorithm: other })),
  );
  return countedLists(lists, { owner });
}

/** All that a record's tag binds; in this order for the life of a store. */
function listTaggedFields(record: KeyRecord): (string | number | Uint8Array)[] {
  return [
    "kms_keys",
    record.keyId,
    record.alias,
    record.algorithm,
    record.usage,
    record.state,
    record.publicKey,
    record.owner,
    record.createdAt.getTime(),
  ];
}

/** A row of a key, and the newest entry of the audit log that tells of its state: its operation, and its details. */
type KeyRow = KmsKeysTable & { readonly last_change: string | null };

/** What entries change the state of a key; the condition is that of their index (migration 18). */
const changes = sql<boolean>`outcome = 'OK' and operation in ('CREATE', 'ROTATE', 'DESTROY')`;

/** Selects keys with what the audit log says of them, both as they are at one moment. */
function selectKeys(db: Kysely<Schema>) {
  return db
    .selectFrom("kms_keys")
    .selectAll()
    .select((from) =>
      from
        .selectFrom("audit_entries")
        .select(sql<string>`operation || ' ' || details`.as("change"))
        .whereRef("audit_entries.key_id", "=", "kms_keys.key_id")
        .where(changes)
        .orderBy("sequence", "desc")
        .limit(1)
        .as("last_change"),
    );
}

const statesAfter: Readonly<Record<string, KeyState>> = {
  CREATE: "ACTIVE",
  ROTATE: "ROTATED",
  DESTROY: "DESTROYED",
};

/** @param pending what the transaction that reads it put into the audit log, and the database does not have yet */
function readRow(store: Store, row: KeyRow, pending: readonly NewAuditEntry[] = []): StoredKey {
  const record = toRecord(row);
  const isChange = ({ keyId, operation, outcome }: NewAuditEntry): boolean =>
    keyId === record.keyId && outcome === "OK" && Object.hasOwn(statesAfter, operation);
  const last = pending.findLast(isChange);
  const [operation = "", details = ""] = last
    ? [last.operation, last.details]
    : (row.last_change ?? "").split(" ");
  const loggedState = statesAfter[operation];
  return {
    record,
    tag: row.record_tag,
    isIntact: store.isTagged(listTaggedFields(record), row.record_tag) && record.state === loggedState,
    loggedState,
    replacedBy: operation === "ROTATE" ? /^newKeyId=(\S+)$/.exec(details)?.[1] : undefined,
  };
}

function toRecord(row: KmsKeysTable): KeyRecord {
  return {
    keyId: row.key_id,
    alias: row.alias,
    // What the record's tag vouches for.
    algorithm: row.algorithm as KeyAlgorithm,
    usage: row.key_usage as KeyUsage,
    state: row.key_state as KeyState,
    publicKey: row.public_key,
    owner: row.owner,
    createdAt: readTime(row.created_at_ms),
  };
}

/** How large a key is in a list, in JSON, about: without its public key. */
function sizeOfListed({ public_key: _, ...row }: KmsKeysTable): number {
  return sizeInJson(row);
}
