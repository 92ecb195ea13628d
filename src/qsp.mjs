#!/usr/bin/env node
/** The command `qsp`: runs src/main.ts on the Node that the project brings, whichever Node runs this file. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { nodePath } from "./setup.mjs";

const main = fileURLToPath(new URL("main.ts", import.meta.url));
const node = existsSync(nodePath) ? nodePath : process.execPath;
const child = spawn(node, ["--max-semi-space-size=64", main, ...process.argv.slice(2)], { stdio: "inherit" });

// A terminal sends its interrupt to both processes; a second one would end the server without waiting for calls.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
