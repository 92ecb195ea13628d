/** Executes a request only once, even if the caller repeats it with the same idempotency key. */
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Kysely, Selectable } from "kysely";
import { wipe } from "../crypto/bytes.ts";
import { CryptoError } from "../crypto/crypto-error.ts";
import { openBytes, sealBytes } from "../crypto/sealing.ts";
import { readChunks } from "../database/read-rows.ts";
import type { Schema } from "../database/schema.ts";
import { RecordDamagedError } from "../database/store-error.ts";
import { countForOwner } from "./list-counts.ts";
import type { Quota } from "./quota.ts";
import type { IdempotentAnswersTable } from "./tables.ts";
import type { RecordsVerification } from "./verify-records.ts";

/** A call that may be retried. */
export interface IdempotentCall {
  /** The caller's ID, with the client that acts for them, if any: each has separate keys. */
  readonly userId: string;
  /** Chosen by the caller: 1 to 255 printable ASCII characters. */
  readonly idempotencyKey: string;
  /** Hash of the method name and request. The same key with a different hash is rejected. */
  readonly requestHash: string;
}

/** The idempotency key was used for a different request. */
export class IdempotencyConflictError extends Error {
  readonly idempotencyKey: string;

  constructor(idempotencyKey: string) {
    super(`the idempotency key ${idempotencyKey} was used for another request; use a new key`);
    this.idempotencyKey = idempotencyKey;
  }
}

/** Encodes and decodes the stored answer of an idempotent call. */
export interface AnswerCodec<Answer> {
  /** @returns undefined for an answer that must not be stored */
  encode(answer: Answer): Uint8Array | undefined;
  decode(bytes: Uint8Array): Answer;
}

/** Creates a codec for answers that are messages. */
export function messageCodec<Schema extends DescMessage>(
  schema: Schema,
): AnswerCodec<MessageInitShape<Schema>> {
  return {
    encode: (answer) => toBinary(schema, create(schema, answer)),
    decode: (bytes) => fromBinary(schema, bytes) as MessageInitShape<Schema>,
  };
}

/** Milliseconds to keep an answer: 24 hours. */
const answerLifetimeMs = 24 * 3600 * 1000;

/**
 * Finds the answer to an earlier call with the same idempotency key.
 *
 * @param sealKey RootKeys.answers
 * @throws IdempotencyConflictError; RecordDamagedError if the row was changed
 */
export async function findAnswer(
  db: Kysely<Schema>,
  sealKey: Uint8Array,
  call: IdempotentCall,
  now: Date,
): Promise<Uint8Array | undefined> {
  const row = await db
    .selectFrom("idempotent_answers")
    .selectAll()
    .where("user_id", "=", call.userId)
    .where("idempotency_key", "=", call.idempotencyKey)
    .where("answered_at_ms", ">", now.getTime() - answerLifetimeMs)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const answer = openAnswer(sealKey, row);
  if (answer === undefined) throw new RecordDamagedError(describeAnswer(row));
  if (row.request_hash !== call.requestHash) throw new IdempotencyConflictError(call.idempotencyKey);
  return answer;
}

/** @returns undefined if the row was changed outside the server */
function openAnswer(sealKey: Uint8Array, row: Selectable<IdempotentAnswersTable>): Uint8Array | undefined {
  const call = { userId: row.user_id, idempotencyKey: row.idempotency_key, requestHash: row.request_hash };
  try {
    return openBytes(sealKey, nameAnswer(call), row.sealed_answer);
  } catch (error) {
    if (!(error instanceof CryptoError)) throw error;
    return undefined;
  }
}

function describeAnswer(row: Pick<IdempotentAnswersTable, "user_id" | "idempotency_key">): string {
  return `answer to idempotency key ${row.idempotency_key} of user ${row.user_id}`;
}

/** Answers to read at once; each may be as large as a response. */
const readAtOnce = 50;

/** Finds answers that were changed outside the server. */
export async function verifyAnswers(db: Kysely<Schema>, sealKey: Uint8Array): Promise<RecordsVerification> {
  let checked = 0;
  const damaged: string[] = [];
  const answers = db.selectFrom("idempotent_answers").selectAll();
  for await (const rows of readChunks(answers, ["user_id", "idempotency_key"], readAtOnce)) {
    for (const row of rows) {
      const answer = openAnswer(sealKey, row);
      if (answer === undefined) damaged.push(describeAnswer(row));
      else wipe(answer);
    }
    checked += rows.length;
  }
  return { checked, damaged };
}

/** Limits the number of keys per user. */
export const idempotencyQuota: Quota = {
  list: "idempotent_answers",
  noun: "idempotency keys in 24 hours",
  kind: "idempotencyKeys",
};

/** Expired answers to remove at once. */
const removedAtOnce = 200;

/** Returns whether any answers have expired. */
export async function hasExpired(db: Kysely<Schema>, now: Date): Promise<boolean> {
  return (await selectExpired(db, now).limit(1).executeTakeFirst()) !== undefined;
}

/** Removes some expired answers, within a transaction. */
export async function removeExpired(db: Kysely<Schema>, now: Date): Promise<void> {
  const expired = await selectExpired(db, now).limit(removedAtOnce).execute();
  await removeAnswers(db, expired);
}

function selectExpired(db: Kysely<Schema>, now: Date) {
  return db
    .selectFrom("idempotent_answers")
    .select(["user_id", "idempotency_key"])
    .where("answered_at_ms", "<=", now.getTime() - answerLifetimeMs)
    .orderBy("answered_at_ms");
}

async function removeAnswers(
  db: Kysely<Schema>,
  answers: readonly Pick<IdempotentAnswersTable, "user_id" | "idempotency_key">[],
): Promise<void> {
  const keysOf = Map.groupBy(answers, ({ user_id }) => user_id);
  for (const [owner, rows] of keysOf) {
    const { numDeletedRows } = await db
      .deleteFrom("idempotent_answers")
      .where("user_id", "=", owner)
      .where(
        "idempotency_key",
        "in",
        rows.map(({ idempotency_key }) => idempotency_key),
      )
      .executeTakeFirstOrThrow();
    if (numDeletedRows > 0n) await countForOwner(db, idempotencyQuota, owner, -Number(numDeletedRows));
  }
}

/**
 * Stores an answer for retries, in the same transaction as the change that it reports.
 *
 * @param requireRoom checks the quota after expired answers have been removed
 */
export async function storeAnswer(
  db: Kysely<Schema>,
  sealKey: Uint8Array,
  call: IdempotentCall,
  answer: Uint8Array,
  now: Date,
  requireRoom: (quota: Quota, owner: string) => Promise<void>,
): Promise<void> {
  await removeExpired(db, now);
  // An existing answer for this key has expired; otherwise the call would not reach this line.
  await removeAnswers(db, [{ user_id: call.userId, idempotency_key: call.idempotencyKey }]);
  await requireRoom(idempotencyQuota, call.userId);
  await db
    .insertInto("idempotent_answers")
    .values({
      user_id: call.userId,
      idempotency_key: call.idempotencyKey,
      request_hash: call.requestHash,
      sealed_answer: sealBytes(sealKey, nameAnswer(call), answer),
      answered_at_ms: now.getTime(),
    })
    .execute();
  await countForOwner(db, idempotencyQuota, call.userId, 1);
}

function nameAnswer({ userId, idempotencyKey, requestHash }: IdempotentCall): string {
  return `idempotent_answers/${JSON.stringify([userId, idempotencyKey, requestHash])}`;
}
