/** The operations of a write transaction. */
import type { Kysely } from "kysely";
import type { NewAuditEntry } from "../audit/chain.ts";
import type { Schema } from "../database/schema.ts";
import type { AnswerCodec, IdempotentCall } from "../records/idempotency.ts";
import type { Quota } from "../records/quota.ts";

/** A write transaction, which commits as a whole or not at all. */
export interface WriteTransaction {
  /** Reads and writes; no other program writes at the same time. */
  readonly db: Kysely<Schema>;
  /**
   * Opens a secret. The caller wipes it.
   *
   * @throws SEAL_BROKEN (CryptoError)
   */
  readSecret(identity: string): Promise<Uint8Array | undefined>;
  /** Seals and stores a secret. The caller wipes it. */
  putSecret(identity: string, secret: Uint8Array): Promise<void>;
  eraseSecret(identity: string): Promise<void>;
  audit(entry: NewAuditEntry): void;
  /**
   * Checks that an owner may add `added` rows to a list; default 1.
   *
   * @throws QuotaExceededError
   */
  requireRoom(quota: Quota, owner: string, added?: number): Promise<void>;
  /** Adds an entry to the identity log. */
  auditIdentity(entry: NewAuditEntry): Promise<void>;
  /** The entries that this transaction has added so far; it writes them to the database when it ends. */
  audited(): readonly NewAuditEntry[];
  /**
   * Runs work once per idempotency key: returns the first answer again, or stores the new answer.
   *
   * @throws IdempotencyConflictError
   */
  runIdempotent<Answer>(
    call: IdempotentCall | undefined,
    codec: AnswerCodec<Answer>,
    work: () => Promise<Answer>,
  ): Promise<Answer>;
  /**
   * The first part of `runIdempotent`, for work on several calls.
   *
   * @throws IdempotencyConflictError
   */
  findAnswer<Answer>(
    call: IdempotentCall | undefined,
    codec: AnswerCodec<Answer>,
  ): Promise<Answer | undefined>;
  /** The second part of `runIdempotent`. */
  storeAnswer<Answer>(
    call: IdempotentCall | undefined,
    codec: AnswerCodec<Answer>,
    answer: Answer,
  ): Promise<void>;
}
