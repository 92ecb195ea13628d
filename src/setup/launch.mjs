/** Runs the compiled program on the Node that the project brings, whichever Node runs this file. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { nodePath } from "../setup.mjs";
import { compiledMain } from "./freshness.mjs";

/** Runs a command line, and ends this process as the program ends. */
export function launch(args) {
  const node = existsSync(nodePath) ? nodePath : process.execPath;
  const child = spawn(node, ["--max-semi-space-size=64", compiledMain, ...args], { stdio: "inherit" });

  // A terminal sends its interrupt to both processes; a second one would end the server without waiting for calls.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}
