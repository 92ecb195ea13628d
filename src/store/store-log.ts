/** The logs in the store: their chains, checkpoints and verification. */
import { createHmac } from "node:crypto";
import { type AuditChain, createAuditChain } from "../audit/chain-writer.ts";
import { createCheckpointSchedule } from "../audit/checkpoint-schedule.ts";
import { type CheckpointSigner, storeCheckpoint } from "../audit/checkpoint-signer.ts";
import { runWalk } from "../audit/run-walk.ts";
import { identityLog, keyLog } from "../audit/tables.ts";
import {
  type AuditVerificationDeps,
  type EntriesVerification,
  verifyAuditLog,
} from "../audit/verification.ts";
import type { Background } from "../database/background.ts";
import type { Database } from "../database/database.ts";
import { listTablesWith } from "../database/schema.ts";
import type { WriteTransaction } from "./write-transaction.ts";

export interface VerifyOptions
  extends Pick<AuditVerificationDeps, "signal" | "onProgress" | "outside" | "after" | "treeSizes"> {
  /** Whether to sign a checkpoint of a valid log; default: true. An operator's command only reads the log. */
  readonly signsEnd?: boolean | undefined;
}

export type StoreLog = ReturnType<typeof createStoreLog>;

/** The chains of both logs, to which transactions append. */
export interface StoreChains {
  readonly keys: AuditChain;
  readonly identities: AuditChain;
}

/** @param auditKey RootKeys.audit */
export function createStoreChains(writer: Database["writer"], auditKey: Uint8Array): StoreChains {
  return {
    keys: createAuditChain(writer, auditKey, keyLog),
    identities: createAuditChain(writer, identityTagKey(auditKey), identityLog),
  };
}

export interface StoreLogDeps {
  readonly database: Database;
  readonly chains: StoreChains;
  readonly signer: CheckpointSigner;
  readonly write: (work: (transaction: WriteTransaction) => Promise<void>) => Promise<void>;
  readonly now: () => Date;
  readonly background: Pick<Background, "started" | "failed">;
}

/** Creates the logs on top of their chains. */
export function createStoreLogs(deps: StoreLogDeps): Readonly<Record<keyof StoreChains, StoreLog>> {
  const { chains, database } = deps;
  const { owners } = database;
  return {
    keys: createStoreLog(deps, chains.keys, listTablesWith(owners, "auditedTables")),
    identities: createStoreLog(deps, chains.identities, listTablesWith(owners, "identityTables")),
  };
}

/**
 * Derives a separate key, so that entries of one log are not valid in the other, whose hash chain starts the
 * same way.
 */
function identityTagKey(auditKey: Uint8Array): Uint8Array {
  return createHmac("sha256", auditKey).update("identity log").digest();
}

function createStoreLog(
  { database, signer, write, now, background }: StoreLogDeps,
  chain: AuditChain,
  recorded: AuditVerificationDeps["recorded"],
) {
  const { tables, tagKey } = chain;
  const { reader } = database;
  const readEnd = () => chain.readTrueHead(reader);
  const schedule = createCheckpointSchedule({
    readTrueHead: readEnd,
    signer,
    write,
    now,
    log: tables,
    background,
  });
  return {
    ...schedule,
    chain,
    /**
     * Reads the end of the log, outside a transaction.
     *
     * @throws StoreFailureError if the end was changed or an older log was restored
     */
    readEnd,
    /** Verifies the log and, if it is valid, signs a checkpoint of it. */
    async verify({ signsEnd = true, ...options }: VerifyOptions = {}): Promise<EntriesVerification> {
      const found = await verifyAuditLog({
        db: reader,
        log: tables,
        verifyCheckpoint: (checkpoint) => signer.verify(checkpoint, tables),
        seen: chain.newestSeen(),
        walk: (input, who) => runWalk(database.location, input, who),
        tagKey,
        recorded,
        ...options,
      });
      if (!signsEnd || !found.valid || found.entries === 0) return found;
      if (found.checkpoint?.entryHash === found.head) return found;
      // The log has just been verified, so the store may sign its end.
      const end = { sequence: found.entries, entryHash: found.head };
      const checkpoint = await signer.sign(end, now(), tables);
      // The caller receives the checkpoint even if the store cannot save it.
      await write(({ db }) => storeCheckpoint(db, checkpoint, tables)).catch((error: unknown) =>
        background.failed({ work: "sign_checkpoint", error, about: { table: tables.entries } }),
      );
      return { ...found, checkpoint };
    },
  };
}
