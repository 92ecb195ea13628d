/** What can be wrong with a store. */

/** Says why a store cannot be used, in a sentence for the operator. Ends a start or a command. */
export class StorageError extends Error {}

/** Why a store that was in use did not do what it was asked. */
export type StoreFailureCode =
  /** It cannot be reached or is busy; what was to be written may or may not be there. */
  | "UNAVAILABLE"
  /** The disk is full; nothing was written. */
  | "FULL"
  /** The database says of itself that it is damaged. */
  | "CORRUPT"
  /** The master key was changed, and this program does not have the new one. */
  | "LOCKED";

/** A failure of the database, not of the call that met it. Its cause is for the log alone. */
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
  LOCKED: "the store's master key was changed, and this server does not have the new one",
};

/** A record, or the secret of one, is not as it was written: somebody changed it behind our back. */
export class RecordDamagedError extends Error {
  /** Names it for a person, such as "user ada". */
  readonly record: string;

  constructor(record: string, cause?: unknown) {
    super(`the stored ${record} is not as it was written and cannot be used; restore it from a backup`, {
      cause,
    });
    this.record = record;
  }
}

/** The message of whatever was thrown. */
export function readMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
