/** Injects faults into a program, and counts its disk syncs, with strace (https://strace.io). */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { run } from "../interop/tools.ts";
import type { AtEnd } from "../support/at-end.ts";
import { main } from "../support/program.ts";

/**
 * Runs a command with a fault injected into system calls.
 *
 * @param fault in strace syntax, such as "rename:error=EIO:when=2"
 * @returns 137 as the code of a command that was killed
 */
export function runWithFault(fault: string, ...args: string[]) {
  // Systems differ in which of the three they have; "?" ignores a missing one.
  const injected = fault.replace(/^rename\b/, "?rename,?renameat,?renameat2");
  // -f: all threads; -E: no compile cache, which is also renamed into place.
  const flags = ["-f", "-qq", "-E", "NODE_COMPILE_CACHE", "-o", "/dev/null"];
  const faults = ["-e", `trace=${injected.split(":")[0]}`, "-e", `inject=${injected}`];
  // A shell turns the signal that ended the command, and so strace, into a code.
  const shell = ["-c", 'strace "$@"; exit $?', "sh"];
  return run("sh", [...shell, ...flags, ...faults, process.execPath, main, ...args]);
}

/** A traced program. */
export type Trace = Awaited<ReturnType<typeof traceSyncs>>;

/**
 * Traces all threads of a program until the test ends.
 *
 * @param directory for the output of strace
 */
export async function traceSyncs(pid: number, directory: string, atEnd: AtEnd) {
  const file = join(directory, "trace");
  // -f: all threads; -y: paths of files. strace writes a line before the program continues.
  const flags = ["-f", "-y", "-e", "trace=fsync,fdatasync", "-o", file, "-p", String(pid)];
  const strace = spawn("strace", flags, { stdio: ["ignore", "ignore", "pipe"] });
  await once(strace, "spawn");
  const ended = once(strace, "close");
  atEnd(async () => {
    strace.kill("SIGINT");
    await ended;
  });
  const said: string[] = [];
  for await (const line of createInterface({ input: strace.stderr })) {
    said.push(line);
    if (line.includes(`Process ${pid} attached`)) break;
  }
  if (!said.at(-1)?.includes("attached")) throw new Error(`strace cannot attach: ${said.join("; ")}`);
  return {
    /** Counts successful syncs so far, of files whose path has this ending. */
    countSyncs: (ending: string): number =>
      findSyncedPaths(readFileSync(file, "utf8")).filter((path) => path.endsWith(ending)).length,
  };
}

/** Returns the paths of successful syncs; with concurrent threads, a call and its result are two lines. */
function findSyncedPaths(trace: string): string[] {
  const unfinished = new Map<string, string>();
  const paths: string[] = [];
  for (const line of trace.split("\n")) {
    const [, thread = "", rest = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const path = /^f(?:data)?sync\(\d+<([^>]*)>/.exec(rest)?.[1];
    if (path !== undefined && rest.endsWith("<unfinished ...>")) unfinished.set(thread, path);
    else if (/= 0$/.test(rest)) paths.push(path ?? unfinished.get(thread) ?? "");
  }
  return paths;
}
