/**
 * The store contains the records, secrets and audit entries of all services.
 *
 * Reads go straight to the database. Only one transaction writes at a time, across all programs that share the
 * database. Concurrent calls share it: see group-commit.ts.
 */

import { createHmac } from "node:crypto";
import type { AuditEntry, AuditHead } from "../audit/chain.ts";
import { createCheckpointer } from "../audit/checkpointer.ts";
import { type CheckpointSigner, openCheckpointSigner, storeCheckpoint } from "../audit/checkpoints.ts";
import { type AuditChain, createAuditChain, type PendingEntries, selectHead } from "../audit/log.ts";
import { identityLog, keyLog, type LogTables } from "../audit/tables.ts";
import { readTrueEntries } from "../audit/true-entries.ts";
import { type AuditVerification, type AuditVerificationDeps, verifyAuditLog } from "../audit/verification.ts";
import type { CryptoProvider, PublicKey } from "../crypto/provider.ts";
import {
  type Database,
  type DatabaseLocation,
  type OpenMode,
  openDatabaseOf,
  type Reader,
} from "../database/database.ts";
import { diskFullError } from "../database/disk-full.ts";
import {
  type BatchWork,
  createGroupCommit,
  type GroupCommit,
  type Transact,
} from "../database/group-commit.ts";
import { poll } from "../database/poll.ts";
import { listAuditedTables, listIdentityTables, type TableOwner } from "../database/schema.ts";
import { mayPass, readMessage, StorageError, StoreFailureError } from "../database/store-error.ts";
import {
  type AnswerCodec,
  findAnswer,
  hasExpired,
  type IdempotentCall,
  idempotencyQuota,
  removeExpired,
  storeAnswer,
} from "../records/idempotency.ts";
import { noLimits, type Quota, QuotaExceededError, type QuotaLimits, requireRoom } from "../records/quota.ts";
import { equalTags, type TagField, tagRecord } from "../records/tag.ts";
import type { MasterKeySource } from "../secrets/master-key.ts";
import { notWhole, unlock } from "../secrets/root-keys.ts";
import { withPlace } from "../shared-memory/places.ts";
import type { SharedMemory } from "../shared-memory/shared-memory.ts";
import type { WriteTransaction } from "./write-transaction.ts";

/** An open store. */
export interface Store {
  /** Builds read queries; each sees what was committed before it. */
  readonly reader: Reader;
  /**
   * Runs work in a shared transaction. Its changes are on the disk when this returns. The work may run several times,
   * so it must have no effects beyond its transaction, and must read through that transaction.
   *
   * @throws StoreFailureError if the database is at fault; then nothing was written, or the outcome is unknown.
   */
  write<Output>(work: (transaction: WriteTransaction) => Promise<Output>): Promise<Output>;
  /** Creates a function that serves concurrent calls with one run of the work; otherwise like `write`. */
  batch<Input, Output>(work: BatchWork<WriteTransaction, Input, Output>): (input: Input) => Promise<Output>;
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
  /** Runs work like `write`, but once for each idempotency key. @throws IdempotencyConflictError */
  writeIdempotent<Answer>(
    call: IdempotentCall | undefined,
    codec: AnswerCodec<Answer>,
    work: (transaction: WriteTransaction) => Promise<Answer>,
  ): Promise<Answer>;
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
  ): Promise<Answer>;
  /**
   * Opens a secret. The caller wipes it.
   *
   * @throws SEAL_BROKEN (CryptoError) if the secret was changed or belongs to another record.
   */
  readSecret(identity: string): Promise<Uint8Array | undefined>;
  /** Binds the fields of a record to each other; the first field names its kind. */
  tagRecord(fields: readonly TagField[]): string;
  /** Tells whether a record matches its tag. */
  isTagged(fields: readonly TagField[], tag: string): boolean;
  /** Verifies the audit log, and signs a checkpoint of it if it is valid. */
  verifyAudit(
    options?: Pick<AuditVerificationDeps, "signal" | "onProgress" | "outside">,
  ): Promise<AuditVerification>;
  /** Verifies the log of identities, and signs a checkpoint of it if it is valid. */
  verifyIdentityLog(
    options?: Pick<AuditVerificationDeps, "signal" | "onProgress" | "outside">,
  ): Promise<AuditVerification>;
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
  /** Calls back after each transaction of this program, also of its other event loops. @returns a function that stops it */
  onWrite(listener: () => void): () => void;
  /** Runs a read. @returns undefined if the database cannot be read now */
  ifReachable<T>(read: () => Promise<T>): Promise<T | undefined>;
  /** Waits for running work, signs a last checkpoint, and closes the database. */
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
  /** Measures a write, from its call until it is on the disk; left out, it costs nothing. */
  readonly measureWrite?: MeasureWrite | undefined;
  /** "upgrade" and "existing" refuse a store that does not exist yet. */
  readonly mode?: OpenMode;
  /** How many records one owner may have; no limits if omitted. */
  readonly quotas?: QuotaLimits;
  /** What it shares with stores on other event loops of this program. */
  readonly memory?: Pick<SharedMemory, "writeTurn" | "writes">;
}

/** Milliseconds between searches for expired idempotency keys. */
const sweepMs = 60_000;

/** Opens a store, and creates what it lacks. @throws StorageError with a sentence for the operator */
export async function openStoreOf({
  owners,
  location,
  masterKey,
  provider,
  now = () => new Date(),
  onCommit = () => {},
  measureWrite,
  mode = "create",
  quotas = noLimits,
  memory,
}: StoreOptions): Promise<Store> {
  const database = await openDatabaseOf(owners, location, mode);
  try {
    const { vault, keys } = await unlock(database, masterKey);
    const signer = await openCheckpointSigner(database, vault, provider);
    const chain = createAuditChain(database.writer, keys.audit);
    const identityChain = createAuditChain(database.writer, identityTagKey(keys.audit), identityLog);
    // A damaged log does not stop the start. The next write or verification reports it.
    await chain.readTrueHead(database.reader).catch(passUnlessCorrupt);
    await identityChain.readTrueHead(database.reader).catch(passUnlessCorrupt);
    return createStore({
      database,
      vault,
      keys,
      signer,
      chain,
      identityChain,
      now,
      onCommit,
      measureWrite,
      quotas,
      memory,
    });
  } catch (error) {
    await database.close();
    if (!(error instanceof StoreFailureError)) throw error;
    const why = readMessage(error.cause);
    if (error.code === "CORRUPT") throw notWhole(database.name, why);
    if (error.code === "FULL" && location.kind === "sqlite") throw diskFullError(location.path);
    throw new StorageError(`the store ${database.name} cannot be used: ${why}`, { mayPass: mayPass(error) });
  }
}

function passUnlessCorrupt(error: unknown): void {
  if (!(error instanceof StoreFailureError && error.code === "CORRUPT")) throw error;
}

/** The parts of a store. */
interface StoreDeps extends Omit<Awaited<ReturnType<typeof unlock>>, "keyring"> {
  readonly database: Database;
  readonly signer: CheckpointSigner;
  readonly chain: AuditChain;
  readonly identityChain: AuditChain;
  readonly now: () => Date;
  readonly onCommit: NonNullable<StoreOptions["onCommit"]>;
  readonly measureWrite: MeasureWrite | undefined;
  readonly quotas: QuotaLimits;
  readonly memory: StoreOptions["memory"];
}

function createStore({
  database,
  vault,
  keys,
  signer,
  chain,
  identityChain,
  now,
  onCommit,
  measureWrite,
  quotas,
  memory,
}: StoreDeps): Store {
  const { reader, writer, writeConnection } = database;
  const listeners = new Set<() => void>();

  const answers: Pick<WriteTransaction, "runIdempotent" | "findAnswer" | "storeAnswer" | "requireRoom"> = {
    requireRoom: (quota, owner, added) => requireRoom(writer, quotas, quota, owner, added),
    async findAnswer(call, codec) {
      const found = call && (await findAnswer(writer, keys.answers, call, now()));
      return found && codec.decode(found);
    },
    async storeAnswer(call, codec, answer) {
      const encoded = codec.encode(answer);
      if (call && encoded) await storeAnswer(writer, keys.answers, call, encoded, now(), answers.requireRoom);
    },
    async runIdempotent(call, codec, work) {
      const before = await answers.findAnswer(call, codec);
      if (before !== undefined) return before;
      const answer = await work();
      await answers.storeAnswer(call, codec, answer);
      return answer;
    },
  };
  let mustScrub = false;
  /** Runs in the background, so callers do not wait for it. If it cannot run now, the next transaction retries it. */
  const scrub = (): void => {
    mustScrub = false;
    void writeConnection.scrub().then(
      (isDone) => {
        mustScrub ||= !isDone;
      },
      () => {},
    );
  };
  const notify = (): void => {
    for (const listener of listeners) listener();
  };
  const stopListening = memory?.writes.listen(notify);
  /** Runs one transaction, from its turn to the disk. */
  const transactNow: Transact<WriteTransaction> = async (work, calls) => {
    const startedMs = performance.now();
    let hasEntries = false;
    let hasIdentities = false;
    let hasErased = false;
    try {
      const [head] = await writeConnection.begin([chain.readHead]);
      const pending = chain.start(head?.rows ?? [], now);
      // Few transactions write to it, so the others do not read its end.
      let identities: Promise<PendingEntries> | undefined;
      const startIdentities = async (): Promise<PendingEntries> => {
        const row = await selectHead(writer, identityLog).executeTakeFirst();
        return identityChain.start(row ? [row] : [], now);
      };
      await work({
        db: writer,
        readSecret: (identity) => vault.read(writer, identity),
        putSecret: (identity, secret) => vault.put(writer, identity, secret),
        eraseSecret: (identity) => {
          hasErased = true;
          return vault.erase(writer, identity);
        },
        audit: pending.append,
        async auditIdentity(entry) {
          identities ??= startIdentities();
          (await identities).append(entry);
        },
        audited: pending.list,
        ...answers,
      });
      const last = pending.finish();
      hasEntries = last.length > 0;
      const pendingIdentities = await identities;
      if (pendingIdentities !== undefined) last.push(...pendingIdentities.finish());
      await writeConnection.commit(last).catch((error: unknown) => {
        if (error instanceof StoreFailureError) throw error;
        // The last statements write to the audit log only. A duplicate entry means that the log was changed.
        const isTaken = /unique|duplicate/i.test(readMessage(error));
        throw new StoreFailureError(isTaken ? "CORRUPT" : "UNAVAILABLE", error);
      });
      pending.committed();
      pendingIdentities?.committed();
      hasIdentities = pendingIdentities !== undefined;
      if (hasErased || mustScrub) scrub();
    } catch (error) {
      await writeConnection.rollback();
      throw error;
    }
    onCommit(performance.now() - startedMs, calls);
    notify();
    memory?.writes.send();
    if (hasEntries) checkpointer.entriesWritten();
    if (hasIdentities) identityCheckpointer.entriesWritten();
  };
  // The event loops of this program take turns before they ask the database: it would let them wait in no order.
  const transact: typeof transactNow = (work, calls) =>
    withPlace(memory?.writeTurn, () => transactNow(work, calls));
  const ownGroup = createGroupCommit(transact, (error) => error instanceof StoreFailureError);
  const group = measureWrite === undefined ? ownGroup : measureGroup(ownGroup, measureWrite);
  /** Refuses a new idempotency key before any computation, unless an expired key will make room. */
  const requireRoomForKey = async ({ userId }: IdempotentCall): Promise<void> => {
    try {
      await requireRoom(reader, quotas, idempotencyQuota, userId);
    } catch (error) {
      if (!(error instanceof QuotaExceededError && (await hasExpired(reader, now())))) throw error;
    }
  };
  const stopSweeping = poll(sweepMs, async () => {
    while (await hasExpired(reader, now())) await group.run(({ db }) => removeExpired(db, now()));
  });
  const checkpointer = createCheckpointer(() => chain.readTrueHead(reader), signer, group.run, now);
  const identityCheckpointer = createCheckpointer(
    () => identityChain.readTrueHead(reader),
    signer,
    group.run,
    now,
    identityLog,
  );
  /** Verifies a log, and signs a checkpoint of it if it is valid. */
  const verifyLog = async (
    deps: Pick<AuditVerificationDeps, "tagKey" | "seen" | "recorded" | "signal" | "onProgress" | "outside">,
    log: LogTables,
  ): Promise<AuditVerification> => {
    const found = await verifyAuditLog({
      db: reader,
      log,
      verifyCheckpoint: (checkpoint) => signer.verify(checkpoint, log),
      ...deps,
    });
    if (!found.valid || found.entries === 0 || found.checkpoint?.entryHash === found.head) return found;
    // The log was just verified, so the store may sign its end.
    const checkpoint = await signer.sign({ sequence: found.entries, entryHash: found.head }, now(), log);
    // The caller receives the checkpoint even if the store cannot save it.
    await group.run(({ db }) => storeCheckpoint(db, checkpoint, log)).catch(() => {});
    return { ...found, checkpoint };
  };

  const store: Store = {
    reader,
    write: group.run,
    batch: group.batch,
    checkpointKey: signer.publicKey,
    signFor: signer.signFor,
    readAuditEnd: () => chain.readTrueHead(reader),
    readTrueEntries: (after, limit) => readTrueEntries(reader, keys.audit, after, limit),
    async readTrueHashes(after, limit) {
      const recent = chain.recent.list(after + 1, limit);
      if (recent.length > 0) return recent;
      const entries = await readTrueEntries(reader, keys.audit, after, limit);
      return entries.map(({ entryHash }) => entryHash);
    },
    async findAnswer(call, codec) {
      const found = call && (await findAnswer(reader, keys.answers, call, now()));
      return found && codec.decode(found);
    },
    requireRoom: (quota, owner, added) => requireRoom(reader, quotas, quota, owner, added),
    async writeIdempotent(call, codec, work) {
      const before = await store.findAnswer(call, codec);
      if (before !== undefined) return before;
      if (call !== undefined) await requireRoomForKey(call);
      return group.run((transaction) => transaction.runIdempotent(call, codec, () => work(transaction)));
    },
    async runIdempotent(call, codec, work) {
      const before = await store.findAnswer(call, codec);
      if (before !== undefined) return before;
      if (call !== undefined) await requireRoomForKey(call);
      try {
        return await work((change) =>
          group.run((transaction) => transaction.runIdempotent(call, codec, () => change(transaction))),
        );
      } catch (error) {
        if (call === undefined || error instanceof StoreFailureError) throw error;
        // A concurrent call with this key may have succeeded, and its change may be why this one failed.
        const meanwhile = await store.findAnswer(call, codec);
        if (meanwhile !== undefined) return meanwhile;
        throw error;
      }
    },
    readSecret: (identity) => vault.read(reader, identity),
    tagRecord: (fields) => tagRecord(keys.records, fields),
    isTagged: (fields, tag) => equalTags(tag, tagRecord(keys.records, fields)),
    // For each key, the log has the entry of its creation.
    verifyAudit: (options) =>
      verifyLog(
        {
          recorded: listAuditedTables(database.owners),
          tagKey: keys.audit,
          seen: chain.newestSeen(),
          ...options,
        },
        keyLog,
      ),
    verifyIdentityLog: (options) =>
      verifyLog(
        {
          recorded: listIdentityTables(database.owners),
          tagKey: identityTagKey(keys.audit),
          seen: identityChain.newestSeen(),
          ...options,
        },
        identityLog,
      ),
    onWrite(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async ifReachable(read) {
      try {
        return await read();
      } catch (error) {
        if (error instanceof StoreFailureError) return undefined;
        throw error;
      }
    },
    async close() {
      stopListening?.();
      stopSweeping();
      await group.drain();
      await checkpointer.close();
      await identityCheckpointer.close();
      await group.drain();
      await database.close();
    },
  };
  return store;
}

/** Measures each call that takes part in a transaction. */
function measureGroup<Transaction>(
  group: GroupCommit<Transaction>,
  measureWrite: MeasureWrite,
): GroupCommit<Transaction> {
  return {
    ...group,
    run: (work) => measureWrite(() => group.run(work)),
    batch: (work) => {
      const submit = group.batch(work);
      return (input) => measureWrite(() => submit(input));
    },
  };
}

/** A key of its own, so that the entries of one log are not valid in the other, whose hashes begin alike. */
function identityTagKey(auditKey: Uint8Array): Uint8Array {
  return createHmac("sha256", auditKey).update("identity log").digest();
}
