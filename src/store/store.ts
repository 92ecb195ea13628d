/**
 * The store contains the records, secrets and audit entries of all services.
 *
 * Reads go straight to the database. Only one transaction writes at a time, across all programs that share
 * the database. Concurrent calls share a transaction: see group-commit.ts.
 */

import type { AuditEntry, AuditHead, NewAuditEntry } from "../audit/chain.ts";
import type { AuditEntriesTable, LogTables } from "../audit/tables.ts";
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

export interface Store {
  /** Builds read queries; each one sees everything committed before it. */
  readonly reader: Reader;
  /** Operator warnings about database settings that lose data in a crash. */
  readonly risks: readonly string[];
  /** Receives failures of background work. */
  readonly background: Background;
  /**
   * Runs work in a shared transaction. The changes are on disk when this returns. The work may run several
   * times, so it must have no other side effects and must read through the transaction.
   *
   * @throws StoreFailureError if the database fails; then nothing was written, or the outcome is unknown
   */
  write<Output>(
    work: (transaction: WriteTransaction) => Promise<Output>,
    options?: WriteOptions,
  ): Promise<Output>;
  /**
   * Creates a function that serves concurrent calls with a single run of the work; otherwise like `write`.
   */
  batch<Input, Output>(work: BatchWork<WriteTransaction, Input, Output>): (input: Input) => Promise<Output>;
  /**
   * Records a refusal in the audit log. It becomes an entry, on disk when this returns, unless it repeats an
   * earlier refusal or its user has had many; then it is counted, and the count becomes an entry later. See
   * src/audit/refusal-budget.ts.
   *
   * @throws StoreFailureError
   */
  recordRefusal(entry: NewAuditEntry): Promise<void>;
  /**
   * Checks, before any computation, that an owner may add `added` rows to a list. The transaction checks
   * again.
   *
   * @throws QuotaExceededError
   */
  requireRoom(quota: Quota, owner: string, added?: number): Promise<void>;
  /**
   * Finds the answer to an earlier call with this idempotency key.
   *
   * @throws IdempotencyConflictError
   */
  findAnswer<Answer>(
    call: IdempotentCall | undefined,
    codec: AnswerCodec<Answer>,
  ): Promise<Answer | undefined>;
  /**
   * Runs `work` once per idempotency key; later calls get the first answer again. The work can do slow
   * preparation and then write with the function that it receives.
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
   * @throws SEAL_BROKEN (CryptoError) if the secret was changed or belongs to a different record
   */
  readSecret(identity: string): Promise<Uint8Array | undefined>;
  /**
   * Opens several secrets with one read. The caller wipes them.
   *
   * @returns each existing secret; undefined for one that was changed or belongs to a different record
   */
  readSecrets(identities: readonly string[]): Promise<ReadonlyMap<string, Uint8Array | undefined>>;
  /** Binds a record's fields to each other; the first field names the record's kind. */
  tagRecord(fields: readonly TagField[]): string;
  /** Returns whether a record matches its tag. */
  isTagged(fields: readonly TagField[], tag: string): boolean;
  /** Finds answers to idempotent calls that were changed outside the server. */
  verifyAnswers(): Promise<RecordsVerification>;
  /** Verifies the audit log and, if it is valid, signs a checkpoint of it. */
  verifyAudit(options?: VerifyOptions): Promise<EntriesVerification>;
  /** Verifies the identity log and, if it is valid, signs a checkpoint of it. */
  verifyIdentityLog(options?: VerifyOptions): Promise<AuditVerification>;
  /** Returns whether the server wrote an entry of a log after the entry with the given hash. */
  isTrueEntry(row: AuditEntriesTable, previousHash: string, log: LogTables): boolean;
  /**
   * Reads the end of the audit log.
   *
   * @throws StoreFailureError if the end was changed or an older log was restored
   */
  readAuditEnd(): Promise<AuditHead>;
  /**
   * Reads audit entries after a sequence number, oldest first, and checks that the server wrote them.
   *
   * @throws RecordDamagedError
   */
  readTrueEntries(after: number, limit: number): Promise<AuditEntry[]>;
  /**
   * Reads the hashes of such entries, at least one if any exist. Recent hashes come from memory.
   *
   * @throws RecordDamagedError
   */
  readTrueHashes(after: number, limit: number): Promise<string[]>;
  /** Verifies checkpoint signatures. */
  readonly checkpointKey: PublicKey;
  /**
   * Signs with the checkpoint key for a different purpose.
   *
   * @param context identifies the purpose; not empty
   */
  signFor(context: Uint8Array, message: Uint8Array): Promise<Uint8Array>;
  /** Returns the caller of the current work. */
  readonly callerOf: () => string;
  /**
   * Calls back after each transaction of this program.
   *
   * @returns a function that unsubscribes
   */
  onWrite(listener: () => void): () => void;
  /**
   * Calls back with a problem when the store is no longer writable, and with undefined when it is writable
   * again. While there is a problem, the store probes itself every second; otherwise it probes after a failed
   * read or write, and after ten seconds without a write.
   *
   * @returns a function that unsubscribes
   */
  watchWrites(listener: OnProblem): () => void;
  /**
   * Runs a read for a health report.
   *
   * @returns undefined if the database cannot be read or written
   */
  ifReachable<T>(read: () => Promise<T>): Promise<T | undefined>;
  /** Waits for running work, writes refusal counts, signs a last checkpoint, and closes the database. */
  close(): Promise<void>;
}

/** Measures a write, from its call until it is on disk. */
export type MeasureWrite = <T>(write: () => Promise<T>) => Promise<T>;

export interface StoreOptions {
  /** Owners of the tables in the store. */
  readonly owners: readonly TableOwner[];
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
  readonly provider: CryptoProvider;
  readonly now?: () => Date;
  /**
   * Called per transaction with its duration, from its turn until it is on disk, and the number of calls in
   * it.
   */
  readonly onCommit?: (durationMs: number, calls: number) => void;
  /** Called for each refusal without an entry, because its user has had too many. */
  readonly onRefusalUnrecorded?: () => void;
  /**
   * Returns the caller of the current write, so that callers take turns. Default: all writes belong to one
   * caller.
   */
  readonly callerOf?: () => string;
  /** Measures a write, from its call until it is on disk; omit it to avoid the overhead. */
  readonly measureWrite?: MeasureWrite | undefined;
  /** Called if the open store becomes unusable for good. */
  readonly onLost?: ((error: Error) => void) | undefined;
  /** "upgrade" and "existing" reject a store that does not exist yet. */
  readonly mode?: OpenMode;
  /** Limits per owner. Default: no limits. */
  readonly quotas?: QuotaLimits;
  /** Receives failures of background work. Default: they are not reported. */
  readonly background?: Background;
}
