/** Replaces src/program-files.ts in tests, as configured in vitest.config.ts. */
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { inject } from "vitest";

export * from "../../src/program-files.ts";

/**
 * Finds the compiled module of a thread. Otherwise, each thread would parse its TypeScript again, in up to 0.3 s of
 * CPU.
 */
export function findThread(path: string): URL {
  return pathToFileURL(join(inject("compiledProgram"), `${basename(path, ".ts")}.js`));
}
