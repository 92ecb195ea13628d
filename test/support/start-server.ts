/** Runs the program like an operator. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { inheritedEnvironment } from "./environment.ts";
import { main } from "./program.ts";

/** Another way to run the program than on this Node with the environment of the tests. */
export interface Launch extends Pick<SpawnOptions, "cwd" | "env" | "gid" | "stdio" | "uid"> {
  /** The program and its first arguments. */
  readonly command?: readonly [string, ...string[]];
}

/** How to start the program. */
export interface StartOptions {
  readonly dataDir: string;
  /** Flags in addition to --port 0 and --data-dir. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly how?: Launch;
}

/** How the program ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running server. */
export interface RunningServer {
  readonly url: string;
  /** "127.0.0.1:port", as gRPC clients expect it. */
  readonly authority: string;
  readonly process: ChildProcess;
  /** Resolves when the program has ended. */
  readonly exit: Promise<Exit>;
  /** Stops the server, gracefully unless another signal is given. */
  stop(signal?: NodeJS.Signals): Promise<Exit>;
}

/** Starts a server and waits until it reports that it is ready. */
export async function startServer({ dataDir, args = [], env, how }: StartOptions): Promise<RunningServer> {
  const { child, exit, output } = launch(["serve", "--port", "0", "--data-dir", dataDir, ...args], env, how);
  const url = await Promise.race([
    readUntil(child, () => /ready on (https?:\S+)\n/.exec(output.stdout)?.[1]),
    exit.then(({ code, stderr }) => {
      throw new Error(`the program ended with ${code} before it was ready: ${stderr}`);
    }),
  ]);
  return {
    url,
    authority: new URL(url).host,
    process: child,
    exit,
    stop: (signal = "SIGTERM") => {
      child.kill(signal);
      return exit;
    },
  };
}

/** Runs the program to its end with exactly these arguments. */
export function runToEnd(
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
  how?: Launch,
): Promise<Exit> {
  return launch(args, env, how).exit;
}

/** Starts the program, and collects its output. */
export function launch(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { command: [program, ...first] = [process.execPath, main], ...options }: Launch = {},
) {
  const child: ChildProcess = spawn(program, [...first, ...args], {
    env: { ...inheritedEnvironment(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...options,
  });
  const output = { stdout: "", stderr: "" };
  child.stdout?.on("data", (chunk) => {
    output.stdout += chunk;
  });
  child.stderr?.on("data", (chunk) => {
    output.stderr += chunk;
  });
  const exit = once(child, "close").then(([code, signal]): Exit => ({ code, signal, ...output }));
  return { child, exit, output };
}

/** Waits until a program has printed something. */
export function readUntil(child: ChildProcess, find: () => string | undefined): Promise<string> {
  return new Promise((resolve) => {
    const look = (): void => {
      const found = find();
      if (found === undefined) return;
      child.stdout?.off("data", look);
      resolve(found);
    };
    child.stdout?.on("data", look);
  });
}
