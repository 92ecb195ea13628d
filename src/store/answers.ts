/** Stored answers of idempotent calls and owners' quotas, inside and outside transactions. */
import type { Kysely } from "kysely";
import type { Background } from "../database/background.ts";
import type { Database } from "../database/database.ts";
import { poll } from "../database/poll.ts";
import type { Schema } from "../database/schema.ts";
import { StoreFailureError } from "../database/store-error.ts";
import {
  type AnswerCodec,
  findAnswer,
  hasExpired,
  type IdempotentCall,
  idempotencyQuota,
  removeExpired,
  storeAnswer,
} from "../records/idempotency.ts";
import { QuotaExceededError, type QuotaLimits, requireRoom } from "../records/quota.ts";
import type { Store } from "./store.ts";
import type { WriteTransaction } from "./write-transaction.ts";

export interface AnswerDeps {
  readonly database: Pick<Database, "reader" | "writer">;
  /** RootKeys.answers */
  readonly sealKey: Uint8Array;
  readonly quotas: QuotaLimits;
  readonly now: () => Date;
}

/** The transaction methods that this file provides. */
export type AnswersOfTransaction = Pick<
  WriteTransaction,
  "runIdempotent" | "findAnswer" | "storeAnswer" | "requireRoom"
>;
/** The store methods that this file provides. */
export type AnswersOfStore = Pick<Store, "requireRoom" | "findAnswer" | "runIdempotent">;

/** Milliseconds between sweeps for expired idempotency keys. */
const sweepMs = 60_000;

async function findIn<Answer>(
  db: Kysely<Schema>,
  { sealKey, now }: AnswerDeps,
  call: IdempotentCall | undefined,
  codec: AnswerCodec<Answer>,
): Promise<Answer | undefined> {
  const found = call && (await findAnswer(db, sealKey, call, now()));
  return found && codec.decode(found);
}

/** Creates the transaction methods, with state that all transactions share. */
export function createAnswersOfTransaction(deps: AnswerDeps): AnswersOfTransaction {
  const { quotas, sealKey, now } = deps;
  const { writer } = deps.database;
  const answers: AnswersOfTransaction = {
    requireRoom: (quota, owner, added) => requireRoom(writer, quotas, quota, owner, added),
    findAnswer: (call, codec) => findIn(writer, deps, call, codec),
    async storeAnswer(call, codec, answer) {
      const encoded = codec.encode(answer);
      if (call && encoded) await storeAnswer(writer, sealKey, call, encoded, now(), answers.requireRoom);
    },
    async runIdempotent(call, codec, work) {
      const before = await answers.findAnswer(call, codec);
      if (before !== undefined) return before;
      const answer = await work();
      await answers.storeAnswer(call, codec, answer);
      return answer;
    },
  };
  return answers;
}

/** Creates the steps before, around and after a transaction. */
export function createAnswersOfStore(deps: AnswerDeps, write: Store["write"]): AnswersOfStore {
  const { quotas, now } = deps;
  const { reader } = deps.database;
  /** Rejects a new idempotency key before any computation, unless an expired key will make room. */
  const requireRoomForKey = async ({ userId }: IdempotentCall): Promise<void> => {
    try {
      await requireRoom(reader, quotas, idempotencyQuota, userId);
    } catch (error) {
      if (!(error instanceof QuotaExceededError && (await hasExpired(reader, now())))) throw error;
    }
  };
  const answers: AnswersOfStore = {
    requireRoom: (quota, owner, added) => requireRoom(reader, quotas, quota, owner, added),
    findAnswer: (call, codec) => findIn(reader, deps, call, codec),
    async runIdempotent(call, codec, work, options) {
      const before = await answers.findAnswer(call, codec);
      if (before !== undefined) return before;
      if (call !== undefined) await requireRoomForKey(call);
      try {
        return await work((change) =>
          write((transaction) => transaction.runIdempotent(call, codec, () => change(transaction)), options),
        );
      } catch (error) {
        if (call === undefined || error instanceof StoreFailureError) throw error;
        // A concurrent call with this key may have succeeded, and its change may be why this call failed.
        const meanwhile = await answers.findAnswer(call, codec);
        if (meanwhile !== undefined) return meanwhile;
        throw error;
      }
    },
  };
  return answers;
}

/**
 * Removes expired answers periodically.
 *
 * @returns a function that stops it
 */
export function sweepAnswers(
  { database, now }: AnswerDeps,
  write: Store["write"],
  background: Background,
): () => Promise<void> {
  return poll({ work: "sweep_answers", everyMs: sweepMs, background }, async () => {
    while (await hasExpired(database.reader, now())) await write(({ db }) => removeExpired(db, now()));
  });
}
