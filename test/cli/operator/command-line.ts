/** Runs the operator's commands, in this process or as an operator does: with a pipe or at a terminal. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { onTestFinished } from "vitest";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import { type Result, run } from "../../interop/tools.ts";
import { serveApp } from "../../services/app-under-test.ts";
import type { Place } from "../../support/on-both.ts";
import { main } from "../../support/program.ts";
import { type Run, runHere } from "../../support/run-here.ts";

/** Runs a command to its end, in this process. @param input its standard input */
export function runCommand(
  { settings }: Pick<Place, "settings">,
  words: readonly string[],
  input = "",
): Promise<Run> {
  return runHere([...words, ...settings], { env: process.env, stdin: input });
}

/** Runs a command to its end, as a program. @param input its standard input */
export function runProgram(
  place: Pick<Place, "settings">,
  words: readonly string[],
  input = "",
): Promise<Result> {
  return run(process.execPath, [main, ...words, ...place.settings], input);
}

/** Somebody at a terminal. */
export interface Terminal {
  readonly process: ChildProcess;
  /** All that the terminal shows, what is typed among it if it is echoed. */
  shown(): string;
  /** Types, once the terminal shows something; "\r" is the key Enter. */
  typeAfter(prompt: string, keys: string): Promise<void>;
  /** The exit code. */
  readonly ended: Promise<number | null>;
}

/** A terminal of its own for a program: it passes on what is typed, and what the program and the terminal show. */
const pty = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/** Runs a program at a terminal, with Python's module `pty`. */
export function runAtTerminal(program: string, args: readonly string[]): Terminal {
  const child = spawn("python3", ["-c", pty, program, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  const take = (chunk: Buffer): void => {
    text += chunk;
    child.emit("shown");
  };
  child.stdout.on("data", take);
  child.stderr.on("data", take);
  const ended = once(child, "close").then(([code]) => {
    child.emit("shown");
    return code as number | null;
  });
  let typedUpTo = 0;
  return {
    process: child,
    shown: () => text,
    async typeAfter(prompt, keys) {
      for (;;) {
        const at = text.indexOf(prompt, typedUpTo);
        if (at >= 0) {
          typedUpTo = at + prompt.length;
          break;
        }
        if (child.exitCode !== null) throw new Error(`it ended before "${prompt}": ${text}`);
        await once(child, "shown");
      }
      child.stdin.write(keys);
    },
    ended,
  };
}

/** Runs a command at a terminal. */
export function runCommandAtTerminal(place: Pick<Place, "settings">, ...words: string[]): Terminal {
  return runAtTerminal(process.execPath, [main, ...words, ...place.settings]);
}

/** A server with `--auth token`, and calls to it. */
export interface TokenServer {
  /** Ends it; a second time does nothing. */
  stop(): Promise<void>;
  logIn(username: string, password: string): Promise<string>;
  /** Makes a call that wants a token. @returns whose the token is */
  useToken(token: string): Promise<string>;
  /** The identifiers of the keys that verify tokens, as the server lists them. */
  listKeyIds(): Promise<string[]>;
}

/** Starts a server with `--auth token` on a place, in this process; many can run on one. */
export async function startTokenServer(
  { settings }: Pick<Place, "settings">,
  ...args: string[]
): Promise<TokenServer> {
  const flags = ["--auth", "token", "--max-calls-per-second", "0", "--max-queue-ms", "60000", ...args];
  const { url, close } = await serveApp(readConfig(["--port", "0", ...settings, ...flags], {}));
  const sessionManager = new Http2SessionManager(url);
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    sessionManager.abort();
    stopped ??= close();
    return stopped;
  };
  onTestFinished(stop);
  const transport = createGrpcTransport({ baseUrl: url, sessionManager });
  const tokens = createClient(TokenService, transport);
  return {
    stop,
    logIn: async (username, password) => (await tokens.issueToken({ username, password })).token,
    useToken: async (token) => {
      const headers = { authorization: `Bearer ${token}` };
      return (await tokens.getSecureData({}, { headers })).subject;
    },
    listKeyIds: async () => (await tokens.getJwks({})).keys.map(({ kid }) => kid),
  };
}

/** The identifier of the key that signed a token. */
export function keyIdOf(token: string): string {
  return JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()).kid;
}
