/**
 * Runs the compiled program on the Node that the project brings, whichever Node runs this file.
 *
 * In a clone, src/setup.mjs first installs and compiles what is missing. An installed package has no setup.mjs, and its
 * program was compiled when it was packed.
 */
import { spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { findInstalledNode, neededNode, runsHere } from "./find-node.mjs";

const setup = new URL("../setup.mjs", import.meta.url);
const installedMain = fileURLToPath(new URL("../../lib/start.js", import.meta.url));

/**
 * Flags of Node for a server. Little of what its calls make lives long, but V8 would put objects next to the old ones
 * that it saw live longer once, and each would keep what it refers to. Errors name lines of sources.
 */
const serverFlags = ["--max-semi-space-size=64", "--no-allocation-site-pretenuring", "--enable-source-maps"];

/** Runs a command line, and ends this process as the program ends. */
export async function launch(args) {
  const { node, main } = existsSync(setup) ? await prepareClone() : findInstalled();
  const isServer = args[0] === "serve";
  // A second process would cost a client most of its time. A server needs flags that only a new process can get.
  if (!isServer && node === process.execPath) {
    process.argv.splice(1, Infinity, main, ...args);
    await import(pathToFileURL(main).href);
    return;
  }
  runInChild(node, [...(isServer ? serverFlags : []), main, ...args]);
}

/** Installs and compiles what is missing. */
async function prepareClone() {
  const { nodePath } = await import(setup.href);
  const { compiledMain } = await import("./freshness.mjs");
  const isOther = existsSync(nodePath) && realpathSync(nodePath) !== realpathSync(process.execPath);
  return { node: isOther ? nodePath : process.execPath, main: compiledMain };
}

function findInstalled() {
  const node = runsHere ? process.execPath : findInstalledNode();
  if (node !== undefined) return { node, main: installedMain };
  console.error(
    `qsp: this is Node.js ${process.version}, and the program needs ${neededNode}: ` +
      "install the package with its optional dependencies, or run it with a newer Node.js",
  );
  process.exit(2);
}

function runInChild(node, args) {
  // The channel closes if this process is killed, and src/main.ts then ends the program.
  const child = spawn(node, args, { stdio: ["inherit", "inherit", "inherit", "ipc"] });

  // A terminal sends its interrupt to both processes; a second one would end the server without waiting for calls.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.on("error", (error) => {
    console.error(`qsp: ${node} does not start: ${error.message}`);
    process.exit(2);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}
