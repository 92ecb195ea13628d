import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { inject, onTestFinished } from "vitest";

/** A directory of one test; or of one file with `afterAll`, given outside of any hook. It is removed at the end. */
export function makeTemporaryDirectory(atEnd: (remove: () => void) => void = onTestFinished): string {
  const path = mkdtempSync(join(inject("temporaryDirectory"), "test-"));
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
