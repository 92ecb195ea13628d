import { describeSystemError, readErrorCode } from "../system-error.ts";

/** Explains to the operator in one sentence why a store cannot be used. It ends startup or a command. */
export class StorageError extends Error {
  /** Whether a later start may succeed: the database is unreachable, or its disk is full. */
  readonly mayPass: boolean;

  constructor(message: string, { mayPass = false }: { readonly mayPass?: boolean } = {}) {
    super(message);
    this.mayPass = mayPass;
  }
}

/** The store is damaged, or lacks a part that no program can recreate. */
export class StoreDamagedError extends StorageError {
  /** @param what the problem, as a clause: "its root key is missing" */
  constructor(store: string, what: string) {
    super(`the store ${store} is damaged: ${what}; restore a backup`);
  }
}

/** Why an operation on an open store failed. */
export type StoreFailureCode =
  /** The database is unreachable or busy; a write may or may not have happened. */
  | "UNAVAILABLE"
  /** The disk is full; nothing was written. */
  | "FULL"
  /** The database is damaged. */
  | "CORRUPT"
  /** The master key was rotated, and this program does not have the new one. */
  | "LOCKED";

/** The database failed, not the call. The cause is for logs only. */
export class StoreFailureError extends Error {
  readonly code: StoreFailureCode;

  constructor(code: StoreFailureCode, cause: unknown) {
    super(sentences[code], { cause });
    this.code = code;
  }
}

/**
 * Problems that only the operator can fix: SQLITE_READONLY and SQLITE_CANTOPEN
 * (https://sqlite.org/rescode.html), and the SQLSTATEs for a rejected log-in, a missing database and a
 * read-only one (PostgreSQL manual, appendix A).
 */
const lastingCodes = /^(SQLITE_(8|14)|28...|3D000|25006)$/;

/** Returns whether a later attempt may succeed. */
export function mayPass({ code, cause }: StoreFailureError): boolean {
  if (code === "FULL") return true;
  return code === "UNAVAILABLE" && !lastingCodes.test(readErrorCode(cause));
}

/**
 * Meanings of the codes in `cause`, for a person who asks why a store cannot be written. Same sources as
 * above.
 */
const problems: readonly (readonly [RegExp, string])[] = [
  [/^(SQLITE_[56]|55P03)$/, "another program holds the lock for writing"],
  [/^(SQLITE_8|25006)$/, "it is read-only"],
  [/^SQLITE_10$/, "its disk reports an error"],
  [/^SQLITE_14$/, "its file was moved or removed, or cannot be opened"],
];

/** Describes briefly why a store cannot be written, without file or host names. */
export function describeProblem(error: unknown): string {
  if (!(error instanceof StoreFailureError)) return "it rejects writes";
  if (error.code === "FULL") return "disk full";
  if (error.code === "CORRUPT") return "it is damaged";
  const code = readErrorCode(error.cause);
  return problems.find(([pattern]) => pattern.test(code))?.[1] ?? "it cannot be reached";
}

const sentences: Readonly<Record<StoreFailureCode, string>> = {
  UNAVAILABLE: "the store cannot be reached now; try again",
  FULL: "the store's disk is full; nothing was changed",
  CORRUPT: "the store's database is damaged",
  LOCKED: "the store's master key was rotated, and this server does not have the new one",
};

/** A record or its secret was changed outside the server. */
export class RecordDamagedError extends Error {
  /** Name for people, such as "user ada". */
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

/** Describes a thrown value: system errors in words, others by their message. */
export const readMessage = describeSystemError;
