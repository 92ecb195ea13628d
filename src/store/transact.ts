/** Runs one store transaction, from its turn until it is on disk. */
import type { AuditChain, PendingEntries } from "../audit/chain-writer.ts";
import { selectHead } from "../audit/log.ts";
import { identityLog } from "../audit/tables.ts";
import type { WriteConnection } from "../database/connection.ts";
import type { Database } from "../database/database.ts";
import type { Transact } from "../database/group-commit.ts";
import { readMessage, StoreFailureError } from "../database/store-error.ts";
import type { Vault } from "../secrets/vault.ts";
import type { AnswersOfTransaction } from "./answers.ts";
import type { StoreChains } from "./store-log.ts";
import type { WriteTransaction } from "./write-transaction.ts";

export interface TransactDeps {
  readonly database: Database;
  readonly vault: Vault;
  readonly answers: AnswersOfTransaction;
  readonly chains: StoreChains;
  readonly now: () => Date;
  /** Called for each transaction that is on disk. */
  readonly onCommit: (commit: Commit) => void;
}

/** A transaction that is on disk. */
export interface Commit {
  /** Milliseconds from its turn until it was on disk. */
  readonly durationMs: number;
  /** Number of calls that shared it. */
  readonly calls: number;
  /** Chains with new entries. */
  readonly extended: readonly AuditChain[];
}

/** Creates the function that runs transactions, one at a time. */
export function createTransact(deps: TransactDeps): Transact<WriteTransaction> {
  const { database, vault, answers, chains, now, onCommit } = deps;
  const { writer, writeConnection } = database;
  const scrubber = createScrubber(writeConnection);
  const startIdentities = async (): Promise<PendingEntries> => {
    const row = await selectHead(writer, identityLog).executeTakeFirst();
    return chains.identities.start(row ? [row] : [], now);
  };
  return async (work) => {
    const startedMs = performance.now();
    let calls: number;
    let extended: readonly PendingEntries[];
    try {
      const [head] = await writeConnection.begin([chains.keys.readHead]);
      const keys = chains.keys.start(head?.rows ?? [], now);
      /** Few transactions write to the identity log, so the others do not read its end. */
      let identities: Promise<PendingEntries> | undefined;
      let hasErased = false;
      calls = await work({
        ...answers,
        db: writer,
        readSecret: (identity) => vault.read(writer, identity),
        putSecret: (identity, secret) => vault.put(writer, identity, secret),
        eraseSecret: (identity) => {
          hasErased = true;
          return vault.erase(writer, identity);
        },
        audit: keys.append,
        audited: keys.list,
        async auditIdentity(entry) {
          identities ??= startIdentities();
          (await identities).append(entry);
        },
      });
      const pending = identities === undefined ? [keys] : [keys, await identities];
      extended = pending.filter((entries) => entries.list().length > 0);
      await writeConnection.commit(extended.flatMap((entries) => entries.finish())).catch(explainCommit);
      for (const entries of extended) entries.committed();
      scrubber.committed(hasErased);
    } catch (error) {
      await writeConnection.rollback();
      throw error;
    }
    const durationMs = performance.now() - startedMs;
    onCommit({ durationMs, calls, extended: extended.map(({ chain }) => chain) });
  };
}

function explainCommit(error: unknown): never {
  if (error instanceof StoreFailureError) throw error;
  // The last statements write only to the logs. A duplicate entry means that a log was changed.
  const isTaken = /unique|duplicate/i.test(readMessage(error));
  throw new StoreFailureError(isTaken ? "CORRUPT" : "UNAVAILABLE", error);
}

/** Overwrites the traces of erased secrets in the files, in the background, so that callers do not wait. */
function createScrubber(connection: Pick<WriteConnection, "scrub">) {
  /** Whether scrubbing was not possible after an earlier transaction. */
  let isDue = false;
  return {
    committed(hasErased: boolean): void {
      if (!hasErased && !isDue) return;
      isDue = false;
      // After a failure, for example on a full disk, it is still due.
      const scrubbing = connection.scrub().catch(() => false);
      void scrubbing.then((isDone) => {
        isDue ||= !isDone;
      });
    },
  };
}
