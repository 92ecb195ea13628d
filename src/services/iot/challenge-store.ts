/** Stores a hash of each challenge, so that a reader of the database cannot answer one. */
import { hash } from "node:crypto";
import { readTime } from "../../database/row-values.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";

/** A challenge to store. */
export interface NewChallenge {
  readonly challenge: Uint8Array;
  readonly deviceId: string;
  /** The client network that asked for it. */
  readonly client: string;
  readonly expiresAt: Date;
}

/** Which open challenges to count: those that can still be answered. */
export interface OpenChallengeQuery {
  readonly client: string;
  /** Counts only those of this device; all if it is undefined. */
  readonly deviceId?: string;
  readonly now: Date;
  /** Where to stop counting. */
  readonly limit: number;
}

/** Milliseconds for which the store has an expired challenge, so that a late answer gets the reason for its refusal. */
const rememberedMs = 3600 * 1000;
/** The number of expired challenges to remove in one transaction. */
const removedAtOnce = 200;

/** Creates the store of challenges on top of the shared store. */
export function createChallengeStore({ reader, write }: Store) {
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
      { db }: WriteTransaction,
      { challenge, deviceId, client, expiresAt }: NewChallenge,
    ): Promise<void> {
      await removeDead(db, expiresAt);
      const row = { device_id: deviceId, issued_to: client, expires_at_ms: expiresAt.getTime() };
      await db
        .insertInto("iot_challenges")
        .values({ challenge_hash: hashChallenge(challenge), ...row, used_at_ms: null })
        .execute();
    },
    /** Reads a challenge within a transaction. */
    async findChallenge({ db }: WriteTransaction, challenge: Uint8Array) {
      const row = await db
        .selectFrom("iot_challenges")
        .selectAll()
        .where("challenge_hash", "=", hashChallenge(challenge))
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const { device_id: deviceId, expires_at_ms, used_at_ms } = row;
      return { deviceId, expiresAt: readTime(expires_at_ms), isUsed: used_at_ms !== null };
    },
    /** Marks a challenge as used, within a transaction. */
    async useChallenge({ db }: WriteTransaction, challenge: Uint8Array, now: Date): Promise<void> {
      await db
        .updateTable("iot_challenges")
        .set({ used_at_ms: now.getTime() })
        .where("challenge_hash", "=", hashChallenge(challenge))
        .execute();
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
