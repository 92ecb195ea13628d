import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Creates a directory and its missing parents, accessible only to their owner.
 *
 * Node's `recursive` option never returns where a file system answers ENOENT in an existing directory, as
 * /proc does: it creates the parent, which exists, and tries again
 * (https://github.com/nodejs/node/issues/28599 is the same on Windows).
 *
 * @returns the directories that were missing, the deepest first
 * @throws the system error
 */
export function makeDirectories(path: string): string[] {
  const directory = resolve(path);
  if (isDirectory(directory)) return [];
  // The root always exists, or Node could not run.
  const above = dirname(directory) === directory ? [] : makeDirectories(dirname(directory));
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    // Another program was faster.
    if (isDirectory(directory)) return above;
    throw error;
  }
  return [directory, ...above];
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
