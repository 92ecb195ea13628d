/** Tells whether the compiled program is that of the sources. Runs on the machine's own Node (20 or newer). */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The folder of compiled programs. */
export const compiledFolder = join(root, "dist");
/** The file that starts the compiled program. */
export const compiledMain = join(compiledFolder, "main.js");
/** Where the build is named, and the files that it was compiled from, with what identifies them. */
export const inputsPath = join(compiledFolder, "inputs.json");

/**
 * The identity of a source.
 *
 * @typedef {object} Source
 * @property {string} stamp its size and the time of its last change, which are quick to read
 * @property {string} sha256 of its content
 */

/** Tells whether every file that the program was compiled from is as it was then. */
export function isFresh() {
  const inputs = readInputs();
  if (inputs === undefined || !existsSync(compiledMain)) return false;
  if (!existsSync(join(compiledFolder, inputs.build, "main.js"))) return false;
  /** @type {[string, Source][]} */
  const touched = Object.entries(inputs.sources).filter(([path, { stamp }]) => stampOf(path) !== stamp);
  if (touched.length === 0) return true;
  // A checkout or a copy changes the times of files. Only another content makes another program.
  if (touched.some(([path, { sha256 }]) => digestOf(path) !== sha256)) return false;
  for (const [path, source] of touched) source.stamp = stampOf(path);
  try {
    writeFileSync(inputsPath, JSON.stringify(inputs, undefined, 1));
  } catch {
    // Another user owns it. The next start compares the contents again.
  }
  return true;
}

/** @returns {{ build: string, sources: Record<string, Source> } | undefined} undefined if there is none, or damaged */
function readInputs() {
  try {
    const { build, sources } = JSON.parse(readFileSync(inputsPath, "utf8"));
    return typeof build === "string" && typeof sources === "object" ? { build, sources } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The identity of a source.
 *
 * @param {string} path below the folder of package.json
 * @returns {Source}
 */
export function identify(path) {
  return { stamp: stampOf(path), sha256: digestOf(path) };
}

/** @param {string} path */
function stampOf(path) {
  const found = statSync(join(root, path), { throwIfNoEntry: false });
  return found === undefined ? "gone" : `${found.size} ${found.mtimeMs}`;
}

/** @param {string} path */
function digestOf(path) {
  const file = join(root, path);
  return existsSync(file) ? createHash("sha256").update(readFileSync(file)).digest("hex") : "gone";
}
