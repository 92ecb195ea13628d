/** What work that writes to the store may do. */
import type { Kysely } from "kysely";
import type { NewAuditEntry } from "../audit/chain.ts";
import type { Schema } from "../database/schema.ts";
import type { AnswerCodec, IdempotentCall } from "../records/idempotency.ts";
import type { Quota } from "../records/quota.ts";

/** What work that writes is given. All of it happens, or nothing. */
export interface WriteTransaction {
  /** Reads and writes; no other program writes meanwhile. */
  readonly db: Kysely<Schema>;
  /** Opens a secret; the caller wipes it. @throws SEAL_BROKEN (CryptoError) */
  readSecret(identity: string): Promise<Uint8Array | undefined>;
  /** Keeps a secret sealed; the caller wipes it. */
  putSecret(identity: string, secret: Uint8Array): Promise<void>;
  eraseSecret(identity: string): Promise<void>;
  /** Puts an entry into the audit log. */
  audit(entry: NewAuditEntry): void;
  /** Checks that an owner may add so many to a list; 1 if left out. @throws QuotaExceeded */
  requireRoom(quota: Quota, owner: string, added?: number): Promise<void>;
  /** The entries that this transaction put in so far; the database has them at its end only. */
  audited(): readonly NewAuditEntry[];
  /**
   * Does work once for each idempotency key: gives the first answer again, or keeps the one that work comes to.
   *
   * @throws OnceConflict
   */
  once<Answer>(
    call: IdempotentCall | undefined,
    codec: AnswerCodec<Answer>,
    work: () => Promise<Answer>,
  ): Promise<Answer>;
  /** The first half of `once`, for work on several calls. @throws OnceConflict */
  findAnswer<Answer>(
    call: IdempotentCall | undefined,
    codec: AnswerCodec<Answer>,
  ): Promise<Answer | undefined>;
  /** The second half of `once`. */
  keepAnswer<Answer>(
    call: IdempotentCall | undefined,
    codec: AnswerCodec<Answer>,
    answer: Answer,
  ): Promise<void>;
}
