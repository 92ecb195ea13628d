/**
 * Records log-ins and rejected token requests of clients, in the identity log and as lines of the server log.
 *
 * Anyone can fail to log in, so records of failures are limited. Each minute, the first ten failures of a
 * name, and the first sixty of users and sixty of clients, get a line and an entry each. Unknown names get as
 * many lines, without the name, and no entries. All other failures are counted and share one line and one
 * entry. Entries are kept forever, so per hour at most a hundred are for one name, and five hundred each for
 * users and for clients.
 */
import type { Logger } from "pino";
import type { Store } from "../store/store.ts";

/** The caller who tries to log in, and their address. */
export interface LogInOrigin {
  /** The name as the caller gave it. */
  readonly name: string;
  readonly clientAddress: string;
  readonly requestId: string;
}

/** A failed log-in. */
export interface FailedLogIn extends LogInOrigin {
  readonly reason: string;
  /** Whether a user or client has this name. Unknown names are attacker-controlled and are not logged. */
  readonly isKnown: boolean;
  /** ID (`jti`) of the token that a client asked about, if this server has verified the token. */
  readonly tokenId?: string | undefined;
}

/** Operations of a client. */
export type TokenOperation = "ISSUE_TOKEN" | "INTROSPECT_TOKEN" | "REVOKE_TOKEN";

type LogInOperation = "LOG_IN" | "ISSUE_TOKEN";

export type LogInRecords = ReturnType<typeof createLogInRecords>;

const windowMs = 60_000;
/**
 * Failures per minute that are recorded one by one. Users, clients and unknown names have separate budgets,
 * so that a flood of one cannot hide the others.
 */
const maxFailures = 60;
/** Recorded failures of one name per minute, so that one name cannot hide all others. */
const maxFailuresOfName = 10;
/** One-minute windows in an hour, which limits the entries of failures. */
const hourWindows = 60;
const maxHourEntries = 500;
const maxHourEntriesOfName = 100;
/** Client tokens per minute that are recorded one by one: checking a secret takes only microseconds. */
const maxClientTokens = 600;

/** Counts since the last window ended. */
interface Counts {
  /** By kind: user, client or unknown name. */
  readonly singleFailures: Map<string, number>;
  /** By kind and name. */
  readonly failuresOfName: Map<string, number>;
  singleTokens: number;
  /** Failures beyond the limits, by operation and reason. */
  readonly more: Map<string, number>;
}

/**
 * Starts recording.
 *
 * @param options.logger writes the lines; without it, no lines are written
 */
export function createLogInRecords(
  store: Pick<Store, "write">,
  {
    logger,
    intervalMs = windowMs,
  }: { readonly logger?: Pick<Logger, "info" | "warn">; readonly intervalMs?: number },
) {
  let counts = startCounting();
  /** Entries of failures in this hour, by kind, and by kind and name. */
  const hour = new Map<string, number>();
  let windows = 0;
  const writing = new Set<Promise<void>>();
  const count = (name: string): void => void counts.more.set(name, (counts.more.get(name) ?? 0) + 1);
  /**
   * A failed write does not fail the log-in. The next verification does not miss an entry that was never
   * written.
   */
  const addLater = (entry: Parameters<typeof writeEntry>[1]): void => {
    const adding = writeEntry(store, entry).catch((error: unknown) => {
      logger?.warn({ err: error, operation: entry.operation }, "cannot write an identity log entry");
    });
    writing.add(adding);
    void adding.finally(() => writing.delete(adding));
  };
  const endWindow = (): void => {
    const { more } = counts;
    counts = startCounting();
    windows += 1;
    if (windows % hourWindows === 0) hour.clear();
    if (more.size === 0) return;
    const details = [...more].map(([name, times]) => `${name}=${times}`).join(", ");
    logger?.warn({ counts: Object.fromEntries(more) }, "log-ins that are not recorded one by one");
    addLater({ keyId: "", operation: "LOG_INS", user: "system", outcome: "REFUSED", details });
  };
  const timer = setInterval(endWindow, intervalMs).unref();
  return {
    /**
     * Resolves when the entry is on disk.
     *
     * @param operation LOG_IN for a user, or ISSUE_TOKEN for a client
     * @param details what the token is for
     * @throws StoreFailureError
     */
    async succeeded(
      operation: LogInOperation,
      { name, ...origin }: LogInOrigin,
      details = "",
    ): Promise<void> {
      if (operation === "ISSUE_TOKEN") {
        counts.singleTokens += 1;
        if (counts.singleTokens > maxClientTokens) return count("ISSUE_TOKEN_OK");
      }
      const entry = { keyId: name, operation, user: name, outcome: "OK", details, ...origin } as const;
      // Safety priority: to stop anything, a person has to log in first.
      await writeEntry(store, entry, { priority: "safety" });
      logger?.info({ operation, user: name, ...origin }, "logged in");
    },
    /** Returns at once, because response times must not reveal whether the name exists. */
    failed(
      operation: "LOG_IN" | TokenOperation,
      { name, reason, isKnown, tokenId, ...origin }: FailedLogIn,
    ): void {
      // During a flood, the server rejects log-ins without checking passwords.
      if (reason === "LOGIN_LIMITED") return count(reason);
      // Not by operation: guesses at a secret count the same in every operation.
      const kind = operation === "LOG_IN" ? "user" : "client";
      const isSingle =
        (!isKnown || takePlace(counts.failuresOfName, `${kind} ${name}`, maxFailuresOfName)) &&
        takePlace(counts.singleFailures, `${kind} ${isKnown}`, maxFailures);
      // People type passwords into name fields, so unknown names appear neither in lines nor in entries.
      if (isSingle)
        logger?.warn(
          { operation, ...(isKnown && { user: name }), reason, ...(tokenId && { tokenId }), ...origin },
          isLogIn(operation) ? "a log-in was refused" : "a request about a token was refused",
        );
      if (!isKnown) return count(`${reason}_UNKNOWN_NAME`);
      const hasEntry =
        isSingle &&
        takePlace(hour, `${kind} ${name}`, maxHourEntriesOfName) &&
        takePlace(hour, kind, maxHourEntries);
      if (!hasEntry) return count(reason);
      addLater({
        keyId: name,
        operation,
        user: name,
        outcome: "REFUSED",
        details: `reason=${reason}${tokenId === undefined ? "" : `, token=${tokenId}`}`,
        ...origin,
      });
    },
    /** Records the remaining counts. */
    async close(): Promise<void> {
      clearInterval(timer);
      endWindow();
      await Promise.all(writing);
    },
  };
}

function isLogIn(operation: "LOG_IN" | TokenOperation): operation is LogInOperation {
  return operation === "LOG_IN" || operation === "ISSUE_TOKEN";
}

function startCounting(): Counts {
  return { singleFailures: new Map(), failuresOfName: new Map(), singleTokens: 0, more: new Map() };
}

/**
 * Takes one slot of a budget.
 *
 * @returns false if the budget is used up
 */
function takePlace(taken: Map<string, number>, name: string, places: number): boolean {
  const count = taken.get(name) ?? 0;
  if (count >= places) return false;
  taken.set(name, count + 1);
  return true;
}

type Entry = Parameters<Parameters<Parameters<Store["write"]>[0]>[0]["auditIdentity"]>[0];

function writeEntry(
  store: Pick<Store, "write">,
  entry: Entry,
  options?: Parameters<Store["write"]>[1],
): Promise<void> {
  return store.write(({ auditIdentity }) => auditIdentity(entry), options);
}
