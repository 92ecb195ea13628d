/** What the device service keeps of challenges: a hash of each, so that who reads the database cannot answer it. */
import { hash } from "node:crypto";
import { readTime } from "../../database/row-values.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

declare module "../../database/schema.ts" {
  interface Schema {
    iot_challenges: {
      /** SHA-256, 64 lower-case hexadecimal digits. */
      challenge_hash: string;
      device_id: string;
      /** The client network that asked for it. */
      issued_to: string;
      expires_at_ms: number;
      used_at_ms: number | null;
    };
  }
}

/** A challenge as it is kept. */
export interface StoredChallenge {
  readonly deviceId: string;
  readonly expiresAt: Date;
  readonly isUsed: boolean;
}

/** A challenge to keep. */
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
  /** Only those of this device; all if it is undefined. */
  readonly deviceId?: string;
  readonly now: Date;
  /** Where to stop counting. */
  readonly limit: number;
}

/** The challenges of the service. */
export interface ChallengeStore {
  /** Counts the open challenges of a client network, up to a limit. @param db of a transaction; else the reader */
  countOpenChallenges(query: OpenChallengeQuery, db?: WriteTransaction["db"]): Promise<number>;
  /** Keeps a challenge, within a transaction, and removes some of those that are long dead. */
  insertChallenge(transaction: WriteTransaction, challenge: NewChallenge): Promise<void>;
  /** Removes challenges that are long dead. */
  removeDeadChallenges(now: Date): Promise<void>;
  /** Reads a challenge within a transaction. */
  findChallenge(transaction: WriteTransaction, challenge: Uint8Array): Promise<StoredChallenge | undefined>;
  /** Uses a challenge up, within a transaction. */
  useChallenge(transaction: WriteTransaction, challenge: Uint8Array, now: Date): Promise<void>;
}

/** Milliseconds after its death that a challenge is remembered, so that its late user learns why it is refused. */
const rememberedMs = 3600 * 1000;

/** Dead challenges to remove in one transaction. */
const removedAtOnce = 200;

/** Makes the store of challenges on the store of all. */
export function createChallengeStore(store: Store): ChallengeStore {
  return {
    async countOpenChallenges({ client, deviceId, now, limit }, db = store.reader) {
      let query = db
        .selectFrom("iot_challenges")
        .select("device_id")
        .where("issued_to", "=", client)
        .where("used_at_ms", "is", null)
        .where("expires_at_ms", ">", now.getTime());
      if (deviceId !== undefined) query = query.where("device_id", "=", deviceId);
      return (await query.limit(limit).execute()).length;
    },
    async removeDeadChallenges(now) {
      const findOne = () => selectDead(store.reader, now).limit(1).executeTakeFirst();
      while ((await findOne()) !== undefined) await store.write(({ db }) => removeDead(db, now));
    },
    async insertChallenge({ db }, { challenge, deviceId, client, expiresAt }) {
      await removeDead(db, expiresAt);
      await db
        .insertInto("iot_challenges")
        .values({
          challenge_hash: hashChallenge(challenge),
          device_id: deviceId,
          issued_to: client,
          expires_at_ms: expiresAt.getTime(),
          used_at_ms: null,
        })
        .execute();
    },
    async findChallenge({ db }, challenge) {
      const row = await db
        .selectFrom("iot_challenges")
        .selectAll()
        .where("challenge_hash", "=", hashChallenge(challenge))
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const { device_id: deviceId, expires_at_ms, used_at_ms } = row;
      return { deviceId, expiresAt: readTime(expires_at_ms), isUsed: used_at_ms !== null };
    },
    async useChallenge({ db }, challenge, now) {
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
  await db
    .deleteFrom("iot_challenges")
    .where("challenge_hash", "in", selectDead(db, now).limit(removedAtOnce))
    .execute();
}

function hashChallenge(challenge: Uint8Array): string {
  return hash("sha256", challenge, "hex");
}
