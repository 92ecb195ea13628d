/** The errors of a store. */
import { describeSystemError } from "../system-error.ts";

/** Tells the operator in one sentence why a store cannot be used. Ends a start or a command. */
export class StorageError extends Error {
  /** Whether the same start may succeed later: the database cannot be reached, or its disk is full. */
  readonly mayPass: boolean;

  constructor(message: string, { mayPass = false }: { readonly mayPass?: boolean } = {}) {
    super(message);
    this.mayPass = mayPass;
  }
}

/** A store is damaged, or lacks a part that no program can create again. */
export class StoreDamagedError extends StorageError {
  /** @param what is wrong: "its root key is missing" */
  constructor(store: string, what: string) {
    super(`the store ${store} is damaged: ${what}; restore a backup`);
  }
}

/** Why an operation on an open store failed. */
export type StoreFailureCode =
  /** It cannot be reached or is busy; a write may or may not have happened. */
  | "UNAVAILABLE"
  /** The disk is full; nothing was written. */
  | "FULL"
  /** The database is damaged. */
  | "CORRUPT"
  /** The master key was changed, and this program does not have the new one. */
  | "LOCKED";

/** A failure of the database, not of the call. Its cause is for the log only. */
export class StoreFailureError extends Error {
  readonly code: StoreFailureCode;

  constructor(code: StoreFailureCode, cause: unknown) {
    super(sentences[code], { cause });
    this.code = code;
  }
}

/**
 * Reasons that only the operator ends: SQLITE_READONLY and SQLITE_CANTOPEN (https://sqlite.org/rescode.html), and the
 * SQLSTATEs of a refused log-in, a missing database and a read-only one (PostgreSQL manual, appendix A).
 */
const lastingCodes = /^(SQLITE_(8|14)|28...|3D000|25006)$/;

/** Tells whether a later attempt may succeed where this one failed. */
export function mayPass({ code, cause }: StoreFailureError): boolean {
  if (code === "FULL") return true;
  const reason = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return code === "UNAVAILABLE" && !lastingCodes.test(reason);
}

/** What the codes of `cause` mean, for a person who asks why a store cannot be written. The same sources. */
const problems: readonly (readonly [RegExp, string])[] = [
  [/^(SQLITE_[56]|55P03)$/, "another program holds the lock for writing"],
  [/^(SQLITE_8|25006)$/, "it is read-only"],
  [/^SQLITE_10$/, "its disk reports an error"],
  [/^SQLITE_14$/, "its file was moved or removed, or cannot be opened"],
];

/** Describes in a few words, without names of files and hosts, why a store cannot be written. */
export function describeProblem(error: unknown): string {
  if (!(error instanceof StoreFailureError)) return "it refuses to write";
  if (error.code === "FULL") return "disk full";
  if (error.code === "CORRUPT") return "it is damaged";
  const { cause } = error;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return problems.find(([pattern]) => pattern.test(code))?.[1] ?? "it cannot be reached";
}

const sentences: Readonly<Record<StoreFailureCode, string>> = {
  UNAVAILABLE: "the store cannot be reached now; try again",
  FULL: "the store's disk is full; nothing was changed",
  CORRUPT: "the store's database is damaged",
  LOCKED: "the master key of the store was rotated, and this server does not have the new one",
};

/** A record or its secret is not as it was written: it was changed outside of the server. */
export class RecordDamagedError extends Error {
  /** Names it for a person, such as "user ada". */
  readonly record: string;

  constructor(record: string, cause?: unknown) {
    super(
      `the stored ${record} was changed outside the server and cannot be used; restore it from a backup`,
      {
        cause,
      },
    );
    this.record = record;
  }
}

/** Describes a thrown value: an error of the system in words, any other by its message. */
export const readMessage = describeSystemError;
