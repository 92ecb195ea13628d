/** Reads what must not be seen: from a terminal without showing it, else the first line of standard input. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { ConfigError } from "../../config.ts";

/** @param prompt what a person is asked; programs are not */
export async function readPassword(prompt: string): Promise<string> {
  const { stdin, stderr } = process;
  const isTerminal = stdin.isTTY === true;
  // The terminal's own echo is off while readline has it; what readline would echo goes nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: nowhere, terminal: isTerminal });
  if (isTerminal) stderr.write(prompt);
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once("line", resolve);
      lines.once("close", () => resolve(""));
      lines.once("SIGINT", () => reject(new ConfigError("interrupted; nothing was changed")));
    });
  } finally {
    lines.close();
    if (isTerminal) stderr.write("\n");
  }
}
