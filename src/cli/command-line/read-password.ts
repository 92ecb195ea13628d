/** Reads a password: from a terminal without echo, otherwise from the first line of standard input. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { CliError, exitCodes } from "../exit-codes.ts";
import { readLines } from "../files/read.ts";

/**
 * @param prompt shown only on a terminal
 * @returns undefined if the input ends before the first line
 */
export async function readPassword(prompt: string): Promise<string | undefined> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY) {
    for await (const line of readLines("-")) return line;
    return undefined;
  }
  // readline turns the terminal's own echo off and echoes into this sink instead.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: nowhere, terminal: true });
  stderr.write(prompt);
  try {
    return await new Promise<string | undefined>((resolve, reject) => {
      lines.once("line", resolve);
      lines.once("close", () => resolve(undefined));
      lines.once("SIGINT", () =>
        reject(new CliError(exitCodes.interrupted, "interrupted; nothing has changed")),
      );
    });
  } finally {
    lines.close();
    stderr.write("\n");
  }
}
