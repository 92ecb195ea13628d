/** Programs that the tests run but the repository does not bring. */
import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** How a program ended, whatever its exit code. */
export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Tells whether tests of a program are to be skipped because it is missing; with QSP_TEST_REQUIRE_ALL=1 they
 * run, and fail.
 */
export function isMissing(program: string): boolean {
  return process.env.QSP_TEST_REQUIRE_ALL !== "1" && !isInstalled(program);
}

function isInstalled(program: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Runs a program to its end. */
export function run(program: string, args: readonly string[], input = ""): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, [...args], { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== "number") reject(error);
      else resolve({ code: Number(error?.code ?? 0), stdout, stderr });
    });
    child.stdin?.on("error", () => {}); // A program may end without reading what it does not need.
    child.stdin?.end(input);
  });
}
