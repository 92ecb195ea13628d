/**
 * Runs the compiled program on the Node binary installed with the project, whichever Node runs this file.
 *
 * In a clone, src/setup.mjs first installs and compiles what is missing. An installed package has no setup.mjs: its
 * program was compiled when it was packed.
 */
import { spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { findInstalledNode, neededNode, runsHere } from "./find-node.mjs";

const setup = new URL("../setup.mjs", import.meta.url);
const installedMain = fileURLToPath(new URL("../../lib/start.js", import.meta.url));

/**
 * Node flags for a server. Objects allocated in a call are mostly short-lived, but once V8 has seen some of them
 * survive, it would allocate later ones in the old generation and keep everything they refer to. Source maps make
 * errors name source lines.
 */
const serverFlags = ["--max-semi-space-size=64", "--no-allocation-site-pretenuring", "--enable-source-maps"];

/** Runs a command line in the program, and exits with its exit code. */
export async function launch(args) {
  const { node, main } = existsSync(setup) ? await prepareClone() : findInstalled();
  const isServer = args[0] === "serve";
  // A client runs in this process: a second one would take most of its time. A server needs flags that only a new
  // process can get.
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
  // If this process is killed, the channel closes, and src/main.ts then ends the program.
  const child = spawn(node, args, { stdio: ["inherit", "inherit", "inherit", "ipc"] });

  // A terminal sends SIGINT to both processes; forwarding a second one would end the server without draining calls.
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
