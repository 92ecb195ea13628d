/** Tells whether the compiled program is that of the sources. Runs on the machine's own Node (20 or newer). */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The folder of compiled programs. */
export const compiledFolder = join(root, "dist");
/** What starts the compiled program. */
export const compiledMain = join(compiledFolder, "main.js");
/** Where the files are listed that the program was compiled from, with their stamps. */
export const inputsPath = join(compiledFolder, "inputs.json");

/** Tells whether every file that the program was compiled from is as it was then. */
export function isFresh() {
  if (!existsSync(inputsPath) || !existsSync(compiledMain)) return false;
  const inputs = JSON.parse(readFileSync(inputsPath, "utf8"));
  return Object.entries(inputs).every(([path, stamp]) => stampOf(path) === stamp);
}

/**
 * Returns what changes when a file does: its size and the time of its last change. A file that is gone has none.
 *
 * @param {string} path below the folder of package.json
 */
export function stampOf(path) {
  const found = statSync(join(root, path), { throwIfNoEntry: false });
  return found === undefined ? "gone" : `${found.size} ${found.mtimeMs}`;
}
