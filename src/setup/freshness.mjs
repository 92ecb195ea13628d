/** Detects whether the compiled program matches the sources. Runs on the machine's own Node (20 or newer). */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The folder for compiled programs. */
export const compiledFolder = join(root, "dist");
/** The file that starts the compiled program. */
export const compiledMain = join(compiledFolder, "main.js");
/** Names the current build and its source files, with the identity of each. */
export const inputsPath = join(compiledFolder, "inputs.json");

/**
 * The identity of a source file.
 *
 * @typedef {object} Source
 * @property {string} stamp its size and modification time, which are quick to read
 * @property {string} sha256 of its content
 */

/** Returns whether no source file has changed since the program was compiled. */
export function isFresh() {
  const inputs = readInputs();
  if (inputs === undefined || !existsSync(compiledMain)) return false;
  if (!existsSync(join(compiledFolder, inputs.build, "main.js"))) return false;
  /** @type {[string, Source][]} */
  const touched = Object.entries(inputs.sources).filter(([path, { stamp }]) => stampOf(path) !== stamp);
  if (touched.length === 0) return true;
  // A checkout or copy changes modification times; only different content requires a new build.
  if (touched.some(([path, { sha256 }]) => digestOf(path) !== sha256)) return false;
  for (const [path, source] of touched) source.stamp = stampOf(path);
  try {
    writeFileSync(inputsPath, JSON.stringify(inputs, undefined, 1));
  } catch {
    // Another user owns the file. The next start compares contents again.
  }
  return true;
}

/** @returns {{ build: string, sources: Record<string, Source> } | undefined} undefined if missing or damaged */
export function readInputs() {
  try {
    const { build, sources } = JSON.parse(readFileSync(inputsPath, "utf8"));
    return typeof build === "string" && typeof sources === "object" ? { build, sources } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Computes the identity of a source file.
 *
 * @param {string} path relative to the folder of package.json
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
