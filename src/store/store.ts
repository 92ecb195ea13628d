/**
 * The store contains the records, secrets and audit entries of all services.
 *
 * Reads go straight to the database. Only one transaction writes at a time, across all programs that share the
 * database. Concurrent calls share it: see group-commit.ts.
 */

import type { AuditEntry, AuditHead, NewAuditEntry } from "../audit/chain.ts";
import type { AuditVerification, EntriesVerification } from "../audit/verification.ts";
import type { CryptoProvider, PublicKey } from "../crypto/provider.ts";
import type { Background } from "../database/background.ts";
import type { DatabaseLocation, OpenMode, Reader } from "../database/database.ts";
import type { BatchWork } from "../database/group-commit.ts";
import type { TableOwner } from "../database/schema.ts";
import type { AnswerCodec, IdempotentCall } from "../records/idempotency.ts";
import type { Quota, QuotaLimits } from "../records/quota.ts";
import type { TagField } from "../records/tag.ts";
import type { RecordsVerification } from "../records/verify-records.ts";
import type { MasterKeySource } from "../secrets/master-key.ts";
import type { VerifyOptions } from "./store-log.ts";
import type { OnProblem } from "./writability.ts";
import type { WriteTransaction } from "./write-transaction.ts";
import type { WriteOptions } from "./writers.ts";

/** An open store. */
export interface Store {
  /** Builds read queries; each sees what was committed before it. */
  readonly reader: Reader;
  /** Sentences for the operator about settings of the database with which a crash loses data. */
  readonly risks: readonly string[];
  /** Hears of failures of work without a caller. */
  readonly background: Background;
  /**
   * Runs work in a shared transaction. Its changes are on the disk when this returns. The work may run several times,
   * so it must have no other effects than its transaction, and must read through that transaction.
   *
   * @throws StoreFailureError if the database is at fault; then nothing was written, or the outcome is unknown.
   */
  write<Output>(
    work: (transaction: WriteTransaction) => Promise<Output>,
    options?: WriteOptions,
  ): Promise<Output>;
  /** Creates a function that serves concurrent calls with one run of the work; otherwise like a normal `write`. */
  batch<Input, Output>(work: BatchWork<WriteTransaction, Input, Output>): (input: Input) => Promise<Output>;
  /**
   * Records a refusal in the audit log: as an entry that is on the disk when this returns, or, if it repeats an earlier
   * one or its user has had many, in a count that becomes an entry later. See src/audit/refusal-budget.ts.
   *
   * @throws StoreFailureError
   */
  recordRefusal(entry: NewAuditEntry): Promise<void>;
  /**
   * Checks that an owner may add `added` rows to a list, before any computation. The transaction checks again.
   *
   * @throws QuotaExceededError
   */
  requireRoom(quota: Quota, owner: string, added?: number): Promise<void>;
  /** Finds the answer to an earlier call with this idempotency key. @throws IdempotencyConflictError */
  findAnswer<Answer>(
    call: IdempotentCall | undefined,
    codec: AnswerCodec<Answer>,
  ): Promise<Answer | undefined>;
  /**
   * Runs `work` once for each idempotency key, or returns the first answer again. The work can do slow preparation,
   * and then write with the function that it receives.
   *
   * @throws IdempotencyConflictError
   */
  runIdempotent<Answer>(
    call: IdempotentCall | undefined,
    codec: AnswerCodec<Answer>,
    work: (
      write: (change: (transaction: WriteTransaction) => Promise<Answer>) => Promise<Answer>,
    ) => Promise<Answer>,
    options?: WriteOptions,
  ): Promise<Answer>;
  /**
   * Opens a secret. The caller wipes it.
   *
   * @throws SEAL_BROKEN (CryptoError) if the secret was changed or belongs to another record.
   */
  readSecret(identity: string): Promise<Uint8Array | undefined>;
  /**
   * Opens several secrets with one read. The caller wipes them.
   *
   * @returns each that exists; undefined for one that was changed or belongs to another record
   */
  readSecrets(identities: readonly string[]): Promise<ReadonlyMap<string, Uint8Array | undefined>>;
  /** Binds the fields of a record to each other; the first field names its kind. */
  tagRecord(fields: readonly TagField[]): string;
  /** Tells whether a record matches its tag. */
  isTagged(fields: readonly TagField[], tag: string): boolean;
  /** Finds answers to idempotent calls that were changed outside of the server. */
  verifyAnswers(): Promise<RecordsVerification>;
  /** Verifies the audit log, and signs a checkpoint of it if it is valid. */
  verifyAudit(options?: VerifyOptions): Promise<EntriesVerification>;
  /** Verifies the log of identities, and signs a checkpoint of it if it is valid. */
  verifyIdentityLog(options?: VerifyOptions): Promise<AuditVerification>;
  /** Tells whether an entry of the audit log has the owner and the key name that the server wrote with its hash. */
  isEntryTagged(entry: AuditEntry, tag: string): boolean;
  /** Reads the end of the audit log. @throws StoreFailureError if it was changed or an older log put back */
  readAuditEnd(): Promise<AuditHead>;
  /**
   * Reads entries of the audit log after a sequence number, oldest first, and checks that the server wrote them.
   *
   * @throws RecordDamagedError
   */
  readTrueEntries(after: number, limit: number): Promise<AuditEntry[]>;
  /**
   * Reads the hashes of such entries: at least one, unless there is none. Those that this program has just written come
   * from its memory.
   *
   * @throws RecordDamagedError
   */
  readTrueHashes(after: number, limit: number): Promise<string[]>;
  /** Verifies the signatures of checkpoints. */
  readonly checkpointKey: PublicKey;
  /** Signs with the key of checkpoints, for another use. @param context names the use; not empty */
  signFor(context: Uint8Array, message: Uint8Array): Promise<Uint8Array>;
  /** Names the caller of the current work. */
  readonly callerOf: () => string;
  /** Calls back after each transaction of this program. @returns a function that stops it */
  onWrite(listener: () => void): () => void;
  /**
   * Calls back when the store can no longer be written, and with undefined when it can be again. Meanwhile the store
   * probes itself every second, and otherwise after a failed write or read, and after ten seconds without a write.
   *
   * @returns a function that stops it
   */
  watchWrites(listener: OnProblem): () => void;
  /** Runs a read for a report of health. @returns undefined if the database cannot be read or written now */
  ifReachable<T>(read: () => Promise<T>): Promise<T | undefined>;
  /** Waits for running work, writes the counts of refusals, signs a last checkpoint, and closes the database. */
  close(): Promise<void>;
}

/** Measures a write, from its call until it is on the disk. */
export type MeasureWrite = <T>(write: () => Promise<T>) => Promise<T>;

/** The options of a store. */
export interface StoreOptions {
  /** The owners of the tables in the store. */
  readonly owners: readonly TableOwner[];
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
  readonly provider: CryptoProvider;
  readonly now?: () => Date;
  /** Receives for each transaction its duration from its turn to the disk, and the number of calls that shared it. */
  readonly onCommit?: (durationMs: number, calls: number) => void;
  /** Receives each refusal that has no entry, because its user has had too many. */
  readonly onRefusalUnrecorded?: () => void;
  /** Names the caller of the current write: callers take turns. Left out, all writes are of one caller. */
  readonly callerOf?: () => string;
  /** Measures a write, from its call until it is on the disk; left out, it costs nothing. */
  readonly measureWrite?: MeasureWrite | undefined;
  /** Learns if the open store cannot be used any more. */
  readonly onLost?: ((error: Error) => void) | undefined;
  /** "upgrade" and "existing" refuse a store that does not exist yet. */
  readonly mode?: OpenMode;
  /** How many records one owner may have; no limits if omitted. */
  readonly quotas?: QuotaLimits;
  /** Hears of failures of work without a caller; nobody does if left out. */
  readonly background?: Background;
}
