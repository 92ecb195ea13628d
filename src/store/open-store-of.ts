/** Opens a store: the database, its secrets, its logs, and its transactions. */
import { sql } from "kysely";
import type { AuditChain } from "../audit/chain-writer.ts";
import { openCheckpointSigner } from "../audit/checkpoint-signer.ts";
import { keyLog } from "../audit/tables.ts";
import { readTrueEntries } from "../audit/true-entries.ts";
import { checkRow } from "../audit/walk.ts";
import { systemCaller } from "../crypto/lane.ts";
import { unobserved } from "../database/background.ts";
import type { Connection } from "../database/connection.ts";
import {
  createReader,
  type Database,
  type DatabaseLocation,
  openDatabaseOf,
  type Reader,
} from "../database/database.ts";
import { diskFullError } from "../database/disk-full.ts";
import {
  mayPass,
  readMessage,
  StorageError,
  StoreDamagedError,
  StoreFailureError,
} from "../database/store-error.ts";
import { verifyAnswers } from "../records/idempotency.ts";
import { noLimits } from "../records/quota.ts";
import { equalTags, tagRecord } from "../records/tag.ts";
import { unlock } from "../secrets/root-keys.ts";
import { createAnswersOfStore, createAnswersOfTransaction, sweepAnswers } from "./answers.ts";
import { createRefusals } from "./refusals.ts";
import type { MeasureWrite, Store, StoreOptions } from "./store.ts";
import { createStoreChains, createStoreLogs } from "./store-log.ts";
import { type Commit, createTransact } from "./transact.ts";
import { createWritability } from "./writability.ts";
import { createWriters, type Writers } from "./writers.ts";

/**
 * Opens a store and creates its missing parts.
 *
 * @throws StorageError with a sentence for the operator
 */
export async function openStoreOf(options: StoreOptions): Promise<Store> {
  const { owners, location, mode = "create", onLost } = options;
  const database = await openDatabaseOf(owners, location, mode, onLost);
  try {
    return await createStore(database, options);
  } catch (error) {
    await database.close();
    throw explainFailure(error, database.name, location);
  }
}

function explainFailure(error: unknown, name: string, location: DatabaseLocation): unknown {
  if (!(error instanceof StoreFailureError)) return error;
  const why = readMessage(error.cause);
  if (error.code === "CORRUPT") return new StoreDamagedError(name, why);
  if (error.code === "FULL" && location.kind === "sqlite") return diskFullError(location.path);
  return new StorageError(`the store ${name} cannot be used: ${why}`, { mayPass: mayPass(error) });
}

async function createStore(opened: Database, options: StoreOptions): Promise<Store> {
  const { masterKey, provider, now = () => new Date(), quotas = noLimits } = options;
  const { callerOf = () => systemCaller } = options;
  const { background = unobserved } = options;
  const { probe, reserve } = opened;
  const writability = createWritability({ reserve, background });
  // Many calls read before they write, so they fail before any write could reveal the problem.
  const database = observeReads(opened, writability.failed);
  const { reader } = database;
  const { vault, keys } = await unlock(database, masterKey);
  const signer = await openCheckpointSigner(database, vault, provider);
  const chains = createStoreChains(database.writer, keys.audit);
  for (const chain of [chains.keys, chains.identities]) await startChain(chain, reader);

  const listeners = new Set<(commit: Commit) => void>();
  const answers = { database, sealKey: keys.answers, quotas, now };
  const transact = createTransact({
    database,
    vault,
    chains,
    now,
    answers: createAnswersOfTransaction(answers),
    onCommit(commit) {
      options.onCommit?.(commit.durationMs, commit.calls);
      for (const listener of listeners) listener(commit);
    },
  });
  const writers = createWriters({ transact, reserve, writability, callerOf });
  const { write, batch } = measureWriters(writers, options.measureWrite);
  const logs = createStoreLogs({ database, chains, signer, now, background, write });
  listeners.add(({ extended }) => {
    for (const log of [logs.keys, logs.identities]) if (extended.includes(log.chain)) log.entriesWritten();
  });
  const stopSweeping = sweepAnswers(answers, write, background);
  const refusals = createRefusals({ batch, now, background, onUnrecorded: options.onRefusalUnrecorded });

  return {
    ...createAnswersOfStore(answers, write),
    reader,
    risks: database.risks,
    background,
    callerOf,
    write,
    batch,
    recordRefusal: refusals.record,
    checkpointKey: signer.publicKey,
    signFor: signer.signFor,
    readSecret: (identity) => vault.read(reader, identity),
    readSecrets: (identities) => vault.readSome(reader, identities),
    tagRecord: (fields) => tagRecord(keys.records, fields),
    isTagged: (fields, tag) => equalTags(tag, tagRecord(keys.records, fields)),
    verifyAnswers: () => verifyAnswers(reader, keys.answers),
    verifyAudit: logs.keys.verify,
    verifyIdentityLog: logs.identities.verify,
    isTrueEntry(row, entryHash, log) {
      const { tagKey } = (log === keyLog ? logs.keys : logs.identities).chain;
      return checkRow(row, { sequence: row.sequence - 1, entryHash }, tagKey, log) === undefined;
    },
    readAuditEnd: logs.keys.readEnd,
    readTrueEntries: (after, limit) => readTrueEntries(reader, keys.audit, after, limit),
    async readTrueHashes(after, limit) {
      const recent = logs.keys.chain.recent.list(after + 1, limit);
      if (recent.length > 0) return recent;
      const entries = await readTrueEntries(reader, keys.audit, after, limit);
      return entries.map(({ entryHash }) => entryHash);
    },
    onWrite(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    watchWrites: (listener) =>
      writability.watch(listener, () =>
        writers.safety.run(async ({ db }) => void (await sql.raw(probe).execute(db))),
      ),
    ifReachable: async (read) => (writability.problem === undefined ? ifReachable(read) : undefined),
    async close() {
      await stopSweeping();
      await refusals.close();
      await drain(writers);
      await logs.keys.close();
      await logs.identities.close();
      await drain(writers);
      await database.close();
    },
  };
}

/** Calls back when a read fails because of the database. */
function observeReads(database: Database, failed: () => void): Database {
  const { kind, readConnection } = database;
  const run: Connection["run"] = (statements) =>
    readConnection.run(statements).catch((error: unknown) => {
      if (error instanceof StoreFailureError) failed();
      throw error;
    });
  return { ...database, reader: createReader(kind, { ...readConnection, run }) };
}

/** A damaged log does not prevent startup. The next write or verification reports it. */
async function startChain(chain: AuditChain, reader: Reader): Promise<void> {
  try {
    await chain.readTrueHead(reader);
  } catch (error) {
    if (!(error instanceof StoreFailureError && error.code === "CORRUPT")) throw error;
  }
}

async function drain({ normal, safety }: Writers): Promise<void> {
  await normal.drain();
  await safety.drain();
}

/** Measures a store's writes, including every call that shares a transaction. */
function measureWriters(
  writers: Writers,
  measureWrite: MeasureWrite = (write) => write(),
): Pick<Store, "write" | "batch"> {
  return {
    write: (work, { priority = "normal" } = {}) => measureWrite(() => writers[priority].run(work)),
    batch: (work) => {
      const submit = writers.normal.batch(work);
      return (input) => measureWrite(() => submit(input));
    },
  };
}

async function ifReachable<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof StoreFailureError) return undefined;
    throw error;
  }
}
