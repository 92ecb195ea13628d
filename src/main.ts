/** The command line. Apart from src/cli and src/serve.ts, this is the only file that ends the process. */

import os from "node:os";
import { extensions } from "../extensions/index.ts";
import { findUnknownVariables, hasVariables } from "./cli/command-line/unknown-variables.ts";
import { exitCodes, usageError } from "./cli/exit-codes.ts";
import { createVerbTable } from "./cli/groups.ts";
import { reportError, reportWarning } from "./cli/output/report-error.ts";
import { runCommandLine } from "./cli/run.ts";
import { collectSettings } from "./extension.ts";
import type { LoadPackages } from "./services/registry.ts";

// Signing runs in libuv's pool. One thread per core gives the most signatures per second; additional threads
// only queue in the kernel. Two more threads check passwords (--max-password-checks), because each check
// would block a core's thread. libuv reads this variable when the pool is first used, so it is set before a
// verb is loaded.
process.env.UV_THREADPOOL_SIZE ??= String(os.availableParallelism() + 2);

// The launcher (src/setup/launch.mjs) forwards the signals that it gets, except one that kills it. Whoever
// killed it expects the program to end: otherwise the port and the store would stay in use.
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
// The channel must not keep the program running.
process.channel?.unref();

const loadSettings = () => collectSettings(extensions);
const serve = async () => [await (await import("./serve.ts")).createServeVerb(extensions)];

/** Warns about misspelled variables. A server logs the warnings itself. */
async function warnOfVariables(args: readonly string[]): Promise<void> {
  if (!hasVariables(process.env)) return;
  const { listSettings, nameVariable } = await import("./config.ts");
  const settings = listSettings(await loadSettings()).map(({ name }) => nameVariable(name));
  for (const sentence of findUnknownVariables(process.env, settings)) reportWarning(sentence, args);
}

/**
 * Ends the program if npm consumed options meant for the server: it would start on a different port or store.
 */
async function requireAllOptions(args: readonly string[]): Promise<void> {
  // Other starts need not load the settings for this.
  if (process.env.npm_lifecycle_event !== "start") return;
  const { listSettings } = await import("./config.ts");
  const { explainTakenOptions } = await import("./cli/command-line/npm-options.ts");
  const options = listSettings(await loadSettings()).filter(({ isSecret }) => isSecret !== true);
  const taken = explainTakenOptions("start", options, args.slice(1), process.env);
  if (taken !== undefined) process.exit(reportError(usageError(taken), args));
}

/**
 * Ends a start on a signal. The kernel does this for every process but the first one of a container, whose
 * signals it drops: the server would get ready, and be killed with its calls. Once ready, it replaces these
 * listeners.
 */
function endStartOnSignal(): void {
  if (process.pid !== 1) return;
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(exitCodes.interrupted));
}

const args = process.argv.slice(2);
if (args[0] === "serve") {
  endStartOnSignal();
  await requireAllOptions(args);
} else {
  await warnOfVariables(args);
}
const verbs = { serve, ...createVerbTable(extensions) };
/** Most verbs need no package. */
const loadPackages: LoadPackages = async () =>
  (await import("./services/registry.ts")).collectPackages(extensions);
process.exit(await runCommandLine(args, verbs, loadPackages));
