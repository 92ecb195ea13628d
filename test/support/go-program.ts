/** Go programs in tests: each reads JSON values from standard input and answers each with one. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../interop/tools.ts";
import type { AtEnd } from "./at-end.ts";
import { base64 } from "./bytes.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

/** An answer of a program; bytes are in base64. */
export type GoAnswer = Readonly<Record<string, string>>;

/**
 * Prepares a program that needs only Go's standard library (Go 1.26).
 *
 * @returns a function that sends it requests, whose bytes become base64, and returns its answers
 */
export function createGoProgram(source: string, atEnd: AtEnd) {
  const directory = makeTemporaryDirectory(atEnd);
  writeFileSync(join(directory, "go.mod"), "module test\n\ngo 1.26\n");
  writeFileSync(join(directory, "main.go"), source);
  return async (requests: readonly Readonly<Record<string, unknown>>[]): Promise<GoAnswer[]> => {
    const input = requests.map((request) =>
      JSON.stringify(request, (_name, value) => (value instanceof Uint8Array ? base64(value) : value)),
    );
    const { code, stdout, stderr } = await run("go", ["run", "-C", directory, "."], input.join("\n"));
    if (code !== 0) throw new Error(stderr);
    const lines = stdout.trim().split("\n");
    return lines.map((line) => JSON.parse(line));
  };
}
