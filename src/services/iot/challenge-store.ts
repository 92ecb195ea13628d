/** Stores a hash of each challenge, so that someone who can read the database cannot answer one. */
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { RecordOf } from "../../records/columns.ts";
import { openTable } from "../../records/record-table.ts";
import { intact } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { challengeTable } from "./tables.ts";

export interface NewChallenge {
  readonly challenge: Uint8Array;
  readonly deviceId: string;
  /** Client network that requested the challenge. */
  readonly client: string;
  readonly expiresAt: Date;
}

/** A stored challenge. */
export interface IssuedChallenge {
  readonly record: RecordOf<typeof challengeTable.columns>;
  readonly isUsed: boolean;
}

/** Selects the open challenges to count: those that can still be answered. */
export interface OpenChallengeQuery {
  readonly client: string;
  /** Counts only challenges for this device; all challenges if undefined. */
  readonly deviceId?: string;
  readonly now: Date;
  /** Stops counting at this number. */
  readonly limit: number;
}

/** How long the store keeps an expired challenge, so that a late answer gets the specific reason. */
const rememberedMs = 3600 * 1000;
/** Maximum number of expired challenges to remove in one transaction. */
const removedAtOnce = 200;
/** Maximum number of used challenges to remember: more than devices answer while a challenge is valid. */
const maxUsed = 20_000;

export function createChallengeStore(store: Store) {
  const { reader, write } = store;
  const challenges = openTable(store, challengeTable);
  /**
   * Someone who can write to the store could restore a row, with its tag, from before the challenge was used.
   */
  const used = new LRUCache<string, true>({ max: maxUsed });
  return {
    /**
     * Counts the open challenges of a client network, up to a limit.
     *
     * @param db the connection of a transaction; default: the reader
     */
    async countOpenChallenges({ client, deviceId, now, limit }: OpenChallengeQuery, db = reader) {
      let query = db
        .selectFrom("iot_challenges")
        .select("device_id")
        .where("issued_to", "=", client)
        .where("used_at_ms", "is", null)
        .where("expires_at_ms", ">", now.getTime());
      if (deviceId !== undefined) query = query.where("device_id", "=", deviceId);
      return (await query.limit(limit).execute()).length;
    },
    /** Removes challenges that expired long ago. */
    async removeDeadChallenges(now: Date): Promise<void> {
      const findOne = () => selectDead(reader, now).limit(1).executeTakeFirst();
      while ((await findOne()) !== undefined) await write(({ db }) => removeDead(db, now));
    },
    /** Stores a challenge, within a transaction, and removes some that expired long ago. */
    async insertChallenge(
      transaction: WriteTransaction,
      { challenge, deviceId, client, expiresAt }: NewChallenge,
    ): Promise<void> {
      await removeDead(transaction.db, expiresAt);
      await challenges.insert(transaction, {
        challengeHash: hashChallenge(challenge),
        deviceId,
        issuedTo: client,
        expiresAt,
        usedAt: undefined,
      });
    },
    /**
     * Reads a challenge within a transaction.
     *
     * @throws RecordDamagedError
     */
    async findChallenge(
      { db }: WriteTransaction,
      challenge: Uint8Array,
    ): Promise<IssuedChallenge | undefined> {
      const challengeHash = hashChallenge(challenge);
      const record = await challenges.findIntact({ challengeHash }, { db });
      return record && { record, isUsed: record.usedAt !== undefined || used.has(challengeHash) };
    },
    /** Marks a challenge as used, within a transaction. */
    async useChallenge(
      transaction: WriteTransaction,
      { record }: IssuedChallenge,
      usedAt: Date,
    ): Promise<void> {
      await challenges.update(transaction, intact(record), { usedAt });
    },
    /** Remembers that a challenge was used; call it after the transaction has committed. */
    rememberUse(challenge: Uint8Array): void {
      used.set(hashChallenge(challenge), true);
    },
  };
}

function selectDead(db: WriteTransaction["db"], now: Date) {
  return db
    .selectFrom("iot_challenges")
    .select("challenge_hash")
    .where("expires_at_ms", "<", now.getTime() - rememberedMs);
}

async function removeDead(db: WriteTransaction["db"], now: Date): Promise<void> {
  const dead = selectDead(db, now).limit(removedAtOnce);
  await db.deleteFrom("iot_challenges").where("challenge_hash", "in", dead).execute();
}

function hashChallenge(challenge: Uint8Array): string {
  return hash("sha256", challenge, "hex");
}
