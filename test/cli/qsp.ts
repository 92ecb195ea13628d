/** Runs `qsp` like a user, against a whole server. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { readConfig } from "../../src/config.ts";
import { serveApp } from "../services/app-under-test.ts";
import { inheritedEnvironment } from "../support/environment.ts";
import { main } from "../support/program.ts";
import { type Run, runHere } from "../support/run-here.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { whenUnlocked } from "../support/when-unlocked.ts";
import { loadSettings } from "../support/whole-program.ts";

/** The command as npm installs it: it finds the right Node and starts `main` with it. */
export const program = join(import.meta.dirname, "../../src/qsp.mjs");

/** Where and how to run the command. */
export interface RunOptions {
  readonly cwd: string;
  readonly url?: string;
  /** The content of standard input; null leaves it open for the test. */
  readonly stdin?: string | Uint8Array | null;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether to run the command as npm installs it. */
  readonly isInstalled?: boolean;
  /** Whether it leads its own process group, so that the test can signal all of its processes. */
  readonly hasOwnGroup?: boolean;
}

/** The environment of a run, without the variables of the person who runs the tests. */
export function environmentOf({ cwd, url, env }: RunOptions): Record<string, string> {
  return {
    ...inheritedEnvironment(),
    XDG_STATE_HOME: join(cwd, "state"),
    ...(url !== undefined && { QSP_URL: url }),
    ...env,
  };
}

/** Starts `qsp` with exactly these arguments. */
export function startQsp(args: readonly string[], options: RunOptions): ReturnType<typeof launch> {
  return launch(process.execPath, [options.isInstalled ? program : main, ...args], options);
}

/** Runs `qsp` to its end as a separate program. */
export function runQsp(args: readonly string[], options: RunOptions): Promise<Run> {
  return startQsp(args, options).end;
}

/**
 * Runs a command line to its end in this process; `qsp call … -` needs a separate program, because it reads file 0.
 */
export function qsp(args: readonly string[], options: RunOptions): Promise<Run> {
  return runHere(args, { cwd: options.cwd, env: environmentOf(options), stdin: options.stdin ?? "" });
}

/**
 * Runs `qsp`, which must succeed.
 *
 * @returns its output
 */
export async function qspDone(args: readonly string[], options: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await qsp(args, options);
  if (code !== 0) throw new Error(`qsp ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

/**
 * Runs `qsp … --json`, which must succeed.
 *
 * @returns the last answer
 */
export async function qspJson(
  args: readonly string[],
  options: RunOptions,
): Promise<Record<string, unknown>> {
  return JSON.parse((await qspDone([...args, "--json"], options)).trimEnd().split("\n").at(-1) ?? "");
}

/** Runs any program to its end. */
export function launch(
  file: string,
  args: readonly string[],
  options: RunOptions,
): { child: ChildProcess; end: Promise<Run> } {
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: environmentOf(options),
    detached: options.hasOwnGroup ?? false,
    stdio: ["pipe", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  child.stdin.on("error", () => {}); // A program may exit without reading all of its input.
  if (options.stdin !== null) child.stdin.end(options.stdin ?? "");
  const end = once(child, "close").then(([code]): Run => ({ code, stdout, stderr }));
  return { child, end };
}

/** Runs qsp in a shell, which can limit it or redirect it. */
export function inShell(script: string, options: RunOptions): Promise<Run> {
  return launch("bash", ["-c", script.replaceAll("qsp ", `'${process.execPath}' '${main}' `)], options).end;
}

/** The server of one test file, and ways to use it. */
export type CliServer = ReturnType<typeof useServer>;

/**
 * Starts a server in this process for the tests of a file.
 *
 * @param prepare fills its data directory
 */
export function useServer(
  env: Readonly<Record<string, string>> = {},
  prepare: (dataDir: string) => Promise<void> = async () => {},
) {
  const dataDir = makeTemporaryDirectory(afterAll);
  let urlOf = (): string => "";
  beforeAll(async () => {
    await prepare(dataDir);
    const { url, server, close } = await serveApp(
      readConfig(["--port", "0", "--data-dir", dataDir], env, await loadSettings()),
    );
    urlOf = () => url;
    return async () => {
      server.destroy();
      await close();
    };
  }, timeout);
  return {
    get url() {
      return urlOf();
    },
    /** Runs a statement directly in its store. */
    async tamper(sql: string): Promise<void> {
      using database = new DatabaseSync(join(dataDir, "qsp.db"));
      await whenUnlocked(() => database.exec(sql));
    },
    /** Calls it without `qsp`. */
    client: <S extends DescService>(service: S): Client<S> =>
      createClient(service, createGrpcTransport({ baseUrl: urlOf(), idleConnectionTimeoutMs: 1000 })),
    /** A new directory for one test, with the server's address. */
    place: () => ({ cwd: makeTemporaryDirectory(), url: urlOf() }),
  };
}

/** Starts another kind of server on a free port, for one test. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Timeout in milliseconds for a test with several runs, each of which starts Node twice. */
export const timeout = 180_000;
