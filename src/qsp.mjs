#!/usr/bin/env node
/** The command `qsp`: runs the compiled program on the Node that the project brings, whichever Node runs this file. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { compiledMain } from "./setup/freshness.mjs";
import { nodePath } from "./setup.mjs";

const node = existsSync(nodePath) ? nodePath : process.execPath;
const child = spawn(node, ["--max-semi-space-size=64", compiledMain, ...process.argv.slice(2)], {
  stdio: "inherit",
});

// A terminal sends its interrupt to both processes; a second one would end the server without waiting for calls.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
