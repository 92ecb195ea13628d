/** Runs command lines in the test process, in a tenth of the time that a separate program takes to start. */
import { Readable } from "node:stream";
import { vi } from "vitest";
import { runCommandLine } from "../../src/cli/run.ts";
import { inheritedEnvironment } from "./environment.ts";
import { loadPackages, loadServeVerb, verbTable } from "./whole-program.ts";

/** How a command line ended. */
export interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment of a command line. */
export interface Surroundings {
  /** All environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** The content of standard input. */
  readonly stdin?: string | Uint8Array;
}

const table = { serve: loadServeVerb, ...verbTable };
/** Events on which command lines end the process. */
const ends = ["SIGINT", "SIGTERM", "SIGHUP", "uncaughtException"] as const;
let before: Promise<unknown> = Promise.resolve();
// Servers of many test files in one process listen to these. A warning about that would be a command's output.
for (const output of [process.stdout, process.stderr]) output.setMaxListeners(0);

/** Runs a command line to its end. They run one at a time: a process has one directory and one environment. */
export function runHere(args: readonly string[], surroundings: Surroundings): Promise<Run> {
  const running = before.then(() => runAlone(args, surroundings));
  before = running.catch(() => {});
  return running;
}

/**
 * Runs a command line to its end with exactly these arguments, like runToEnd in start-server.ts but in this process.
 */
export function runToEndHere(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Run> {
  return runHere(args, { env: { ...inheritedEnvironment(), ...env } });
}

async function runAlone(args: readonly string[], surroundings: Surroundings): Promise<Run> {
  const stdout = record("stdout");
  const stderr = record("stderr");
  const leave = enter(args, surroundings);
  try {
    const code = await runCommandLine(args, table, loadPackages);
    return { code, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    leave();
    stdout.restore();
    stderr.restore();
  }
}

/** Captures output without printing it. */
function record(name: "stdout" | "stderr") {
  const chunks: Uint8Array[] = [];
  const spy = vi.spyOn(process[name], "write").mockImplementation((chunk, ...rest) => {
    chunks.push(Buffer.from(chunk as string));
    for (const done of rest) if (typeof done === "function") process.nextTick(done);
    return true;
  });
  return { text: () => Buffer.concat(chunks).toString(), restore: () => spy.mockRestore() };
}

/**
 * Gives this process the environment of a command line.
 *
 * @returns a function that restores the previous one
 */
function enter(args: readonly string[], { env, cwd, stdin = "" }: Surroundings): () => void {
  const was = { env: process.env, argv: process.argv, cwd: process.cwd() };
  const ownStdin = Object.getOwnPropertyDescriptor(process, "stdin");
  const listeners = ends.map((event) => [event, process.listeners(event as "SIGINT")] as const);
  const outputs = [process.stdout, process.stderr].map(
    (output) => [output, output.listeners("error")] as const,
  );
  process.env = { ...env };
  process.argv = [...was.argv.slice(0, 2), ...args];
  if (cwd !== undefined) process.chdir(cwd);
  Object.defineProperty(process, "stdin", {
    value: Readable.from(stdin.length === 0 ? [] : [Buffer.from(stdin as string)], { objectMode: false }),
    configurable: true,
  });
  return () => {
    process.env = was.env;
    process.argv = was.argv;
    process.chdir(was.cwd);
    if (ownStdin !== undefined) Object.defineProperty(process, "stdin", ownStdin);
    for (const [event, kept] of listeners)
      for (const added of process.listeners(event as "SIGINT"))
        if (!kept.includes(added)) process.off(event, added);
    for (const [output, kept] of outputs)
      for (const added of output.listeners("error"))
        if (!kept.includes(added)) output.off("error", added as () => void);
  };
}
