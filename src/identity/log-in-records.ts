/**
 * Records log-ins, and what clients may not do with tokens: in the log of identities, and as lines of the server's own
 * log.
 *
 * Anyone can fail to log in, so the records of failures are limited. Each minute, the first ten failures of a name,
 * and the first sixty of users and sixty of clients, each have a line and an entry. Unknown names have as many lines,
 * without the name, and no entries. All other failures are counted, and share one line and one entry. Entries stay for
 * ever, so an hour has at most a hundred of a name, and five hundred of users and of clients.
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

/** A log-in that failed. */
export interface FailedLogIn extends LogInOrigin {
  readonly reason: string;
  /** Whether there is a user or a client of the name. The entry of any other would have what a stranger wrote. */
  readonly isKnown: boolean;
  /** The ID (`jti`) of the token that a client asked about. Only of a token that this server has verified. */
  readonly tokenId?: string | undefined;
}

/** The operations of a client. */
export type TokenOperation = "ISSUE_TOKEN" | "INTROSPECT_TOKEN" | "REVOKE_TOKEN";

type LogInOperation = "LOG_IN" | "ISSUE_TOKEN";

/** Records log-ins. */
export type LogInRecords = ReturnType<typeof createLogInRecords>;

const windowMs = 60_000;
/**
 * Failures of a minute that are recorded one by one. Users, clients and unknown names have separate budgets, so that
 * a flood of one cannot hide the others.
 */
const maxFailures = 60;
/** Failures of one name in a minute that are recorded, so that those of one name cannot hide all others. */
const maxFailuresOfName = 10;
/** Minutes of an hour, and the entries of failures in it. */
const hourWindows = 60;
const maxHourEntries = 500;
const maxHourEntriesOfName = 100;
/** Tokens of clients in a minute that are recorded one by one: a secret is checked in microseconds. */
const maxClientTokens = 600;

/** The counts since the last window ended. */
interface Counts {
  /** By who it is, a user or a client, and whether the name exists. */
  readonly singleFailures: Map<string, number>;
  /** By who it is, and the name. */
  readonly failuresOfName: Map<string, number>;
  singleTokens: number;
  /** Beyond the limits, by operation and reason. */
  readonly more: Map<string, number>;
}

/** Starts recording. @param options.logger writes the lines; without it there are none */
export function createLogInRecords(
  store: Pick<Store, "write">,
  {
    logger,
    intervalMs = windowMs,
  }: { readonly logger?: Pick<Logger, "info" | "warn">; readonly intervalMs?: number },
) {
  let counts = startCounting();
  /** The entries of failures since the hour began: by who it is, and by the name as well. */
  const hour = new Map<string, number>();
  let windows = 0;
  const writing = new Set<Promise<void>>();
  const count = (name: string): void => void counts.more.set(name, (counts.more.get(name) ?? 0) + 1);
  /** A failed write does not fail the log-in. The next verification does not miss an entry that was never written. */
  const addLater = (entry: Parameters<typeof writeEntry>[1]): void => {
    const adding = writeEntry(store, entry).catch((error: unknown) => {
      logger?.warn(
        { err: error, operation: entry.operation },
        "an entry of the identity log cannot be written",
      );
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
     * Returns when the entry is on the disk.
     *
     * @param operation LOG_IN of a user, or ISSUE_TOKEN to a client
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
      // Whoever has to stop something has to log in first.
      await writeEntry(store, entry, { priority: "safety" });
      logger?.info({ operation, user: name, ...origin }, "logged in");
    },
    /** Returns at once: the time of an answer must not reveal whether the name exists. */
    failed(
      operation: "LOG_IN" | TokenOperation,
      { name, reason, isKnown, tokenId, ...origin }: FailedLogIn,
    ): void {
      // The server refuses a flood without checking passwords.
      if (reason === "LOGIN_LIMITED") return count(reason);
      // Not by operation: a guess at a secret counts the same in every operation.
      const kind = operation === "LOG_IN" ? "user" : "client";
      const isSingle =
        (!isKnown || takePlace(counts.failuresOfName, `${kind} ${name}`, maxFailuresOfName)) &&
        takePlace(counts.singleFailures, `${kind} ${isKnown}`, maxFailures);
      // People type passwords where names belong. Therefore an unknown name is neither in a line nor in an entry.
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

/** Takes one of so many places. @returns false if there is none */
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
