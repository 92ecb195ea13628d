import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject, onTestFinished } from "vitest";

/** A directory of one test; or of one file with `afterAll`, given outside of any hook. It is removed at the end. */
export function makeTemporaryDirectory(atEnd: (remove: () => void) => void = onTestFinished): string {
  // `npm run answers` uses it without vitest.
  const parent = process.env.VITEST === undefined ? tmpdir() : inject("temporaryDirectory");
  const path = mkdtempSync(join(parent, "test-"));
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
