/** The errors of a store. */

/** Tells the operator in one sentence why a store cannot be used. Ends a start or a command. */
export class StorageError extends Error {}

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

/** Reads the message of a thrown value. */
export function readMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
