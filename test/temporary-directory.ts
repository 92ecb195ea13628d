import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A directory of one test, or of one file with `afterAll` as the second argument; removed when it ends. */
export function makeTemporaryDirectory(atEnd: (remove: () => void) => void = onTestFinished): string {
  const path = mkdtempSync(join(tmpdir(), "qsp-test-"));
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
