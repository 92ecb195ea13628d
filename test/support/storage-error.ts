/** The error that a store which cannot be opened is refused with. */
import { expect } from "vitest";
import { StorageError } from "../../src/database/store-error.ts";

/** For `toThrow` and its like: a StorageError whose sentence says this. */
export function storageError(message: RegExp) {
  const isRight = (error: unknown): boolean => error instanceof StorageError && message.test(error.message);
  return expect.toSatisfy(isRight, `is a StorageError like ${message}`);
}
