/** The error for a store that cannot be opened. */
import { expect } from "vitest";
import { StorageError } from "../../src/database/store-error.ts";

/** Matches a StorageError with this message, for `toThrow` and similar assertions. */
export function storageError(message: RegExp) {
  const isRight = (error: unknown): boolean => error instanceof StorageError && message.test(error.message);
  return expect.toSatisfy(isRight, `is a StorageError like ${message}`);
}
