/** External programs that tests run and the repository does not include. */
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, globSync } from "node:fs";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";

/** How a program ended, whatever its exit code. */
export interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Returns whether to skip the tests of a missing program. With QSP_TEST_REQUIRE_ALL=1 they run and fail.
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

/**
 * Returns whether to skip tests that need ML-DSA and SLH-DSA in OpenSSL, which has them since 3.5. Debian 12 has an older
 * version, and .ci/run installs no other.
 */
export function isOpensslTooOld(): boolean {
  if (!isInstalled("openssl")) return true;
  const printed = execFileSync("openssl", ["version"], { encoding: "utf8" });
  const [, major = 0, minor = 0] = /(\d+)\.(\d+)/.exec(printed) ?? [];
  return Number(major) * 100 + Number(minor) < 305;
}

/** The actual buf binary: `node_modules/.bin/buf` is a script that starts it, which takes 70 ms of CPU time. */
export const buf =
  globSync("node_modules/@bufbuild/buf-*/bin/buf", { cwd: join(import.meta.dirname, "../..") })
    .map((path) => join(import.meta.dirname, "../..", path))
    .at(0) ?? "buf";

/** Short-lived Go programs need no garbage collection, which is a fifth of the cost of `buf curl`. */
const env = { ...process.env, GOGC: "off" };

/** Runs a program until it exits. */
export function run(program: string, args: readonly string[], input = ""): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      [...args],
      { env, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== "number") reject(error);
        else resolve({ code: Number(error?.code ?? 0), stdout, stderr });
      },
    );
    child.stdin?.on("error", () => {}); // A program may exit without reading its input.
    child.stdin?.end(input);
  });
}

/**
 * Runs a program and yields the JSON objects that it prints, as they arrive. Each object is on its own line, or begins
 * and ends with a line that is one brace. The signal ends the program, and so does a stream of limited length.
 */
export async function* follow(
  program: string,
  args: readonly string[],
  input: string,
  signal?: AbortSignal,
): AsyncGenerator<unknown> {
  const child = spawn(program, args, { env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const closed = once(child, "close");
  const end = (): void => endGroup(child.pid);
  signal?.addEventListener("abort", end, { once: true });
  void closed.finally(() => signal?.removeEventListener("abort", end)).catch(() => {});
  child.stdin.end(input);
  let text = "";
  let isAtEnd = false;
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      text += line;
      if (!/^\}$|^\{.*\}$/.test(line)) continue;
      yield JSON.parse(text);
      text = "";
    }
    isAtEnd = true;
  } finally {
    if (!isAtEnd) end(); // The caller stopped reading early.
  }
  const [code] = await closed;
  if (signal?.aborted !== true && code !== 0) throw new Error(`${program} ended with ${code}: ${stderr}`);
}

/** Ends a program with its children: buf can be a script that starts the actual binary. */
function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGTERM");
  } catch {} // It has already exited.
}
