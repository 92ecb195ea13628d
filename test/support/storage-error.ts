/** The error that a store which cannot be opened is refused with. */
import { expect } from "vitest";
import { StorageError } from "../../src/database/store-error.ts";

/** For `toThrow` and its like: a StorageError whose sentence says this. */
export function storageError(message: RegExp) {
  return expect.objectContaining({ constructor: StorageError, message: expect.stringMatching(message) });
}
