/** Stands in for src/program-files.ts in tests: vitest.config.ts says so. */
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { inject } from "vitest";

export * from "../../src/program-files.ts";

/** Finds the compiled module of a thread. Node would read the TypeScript of each thread anew, in up to 0.3 s of CPU time. */
export function findThread(path: string): URL {
  return pathToFileURL(join(inject("compiledProgram"), `${basename(path, ".ts")}.js`));
}
