/** Runs one store transaction, from its turn until it is on disk. */
import type { NewAuditEntry } from "../audit/chain.ts";
import type { AuditChain, PendingEntries } from "../audit/chain-writer.ts";
import { selectHead } from "../audit/log.ts";
import { identityLog } from "../audit/tables.ts";
import type { Statement, WriteConnection } from "../database/connection.ts";
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
  return async (work) => {
    const startedMs = performance.now();
    let calls: number;
    let entries: EntriesOfTransaction;
    try {
      const [head] = await writeConnection.begin([chains.keys.chain.readHead]);
      entries = new EntriesOfTransaction(chains, database, head?.rows ?? [], now);
      const { keys, auditIdentity } = entries;
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
        auditIdentity,
      });
      await writeConnection.commit(await entries.finish()).catch(explainCommit);
      entries.committed();
      scrubber.committed(hasErased);
    } catch (error) {
      await writeConnection.rollback();
      throw error;
    }
    onCommit({ durationMs: performance.now() - startedMs, calls, extended: entries.listExtended() });
  };
}

function explainCommit(error: unknown): never {
  if (error instanceof StoreFailureError) throw error;
  // The last statements write only to the logs. A duplicate entry means that a log was changed.
  const isTaken = /unique|duplicate/i.test(readMessage(error));
  throw new StoreFailureError(isTaken ? "CORRUPT" : "UNAVAILABLE", error);
}

/** The entries that one transaction adds to the logs. */
class EntriesOfTransaction {
  readonly keys: PendingEntries;
  readonly #chains: StoreChains;
  readonly #database: Database;
  readonly #now: () => Date;
  /** Few transactions write to the identity log, so the others do not read its end. */
  #startingIdentities: Promise<PendingEntries> | undefined;
  #identities: PendingEntries | undefined;
  #hasKeys = false;

  /** @param head the end of the key log, as the transaction read it */
  constructor(chains: StoreChains, database: Database, head: readonly unknown[], now: () => Date) {
    this.keys = chains.keys.chain.start(head, now);
    this.#chains = chains;
    this.#database = database;
    this.#now = now;
  }

  readonly auditIdentity = async (entry: NewAuditEntry): Promise<void> => {
    this.#startingIdentities ??= this.#startIdentities();
    (await this.#startingIdentities).append(entry);
  };

  /** Returns the statements that write the entries. */
  async finish(): Promise<Statement[]> {
    const statements = this.keys.finish();
    this.#hasKeys = statements.length > 0;
    this.#identities = await this.#startingIdentities;
    return this.#identities === undefined ? statements : [...statements, ...this.#identities.finish()];
  }

  /** Call this once the entries are on disk. */
  committed(): void {
    this.keys.committed();
    this.#identities?.committed();
  }

  /** Lists the chains with new entries. */
  listExtended(): AuditChain[] {
    const { keys, identities } = this.#chains;
    return [
      ...(this.#hasKeys ? [keys.chain] : []),
      ...(this.#identities === undefined ? [] : [identities.chain]),
    ];
  }

  async #startIdentities(): Promise<PendingEntries> {
    const row = await selectHead(this.#database.writer, identityLog).executeTakeFirst();
    return this.#chains.identities.chain.start(row ? [row] : [], this.#now);
  }
}

/** Overwrites the traces of erased secrets in the files, in the background, so that callers do not wait. */
function createScrubber(connection: Pick<WriteConnection, "scrub">) {
  /** Whether scrubbing was not possible after an earlier transaction. */
  let isDue = false;
  return {
    committed(hasErased: boolean): void {
      if (!hasErased && !isDue) return;
      isDue = false;
      void connection.scrub().then(
        (isDone) => {
          isDue ||= !isDone;
        },
        () => {},
      );
    },
  };
}
