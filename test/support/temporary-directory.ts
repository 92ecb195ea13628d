import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject, onTestFinished } from "vitest";

/**
 * Creates a directory for one test, or for one file with `afterAll` if called outside of hooks. Removed at the end.
 */
export function makeTemporaryDirectory(atEnd: (remove: () => void) => void = onTestFinished): string {
  // `npm run answers` uses it without vitest.
  const parent = process.env.VITEST === undefined ? tmpdir() : inject("temporaryDirectory");
  const path = mkdtempSync(join(parent, "test-"));
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
