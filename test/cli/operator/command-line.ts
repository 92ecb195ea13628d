/** Runs operator commands: in this process, with a pipe, or at a terminal. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { onTestFinished } from "vitest";
import type { UserRole } from "../../../src/identity/users.ts";
import { startAccessServer } from "../../access/access-server.ts";
import { type Result, run } from "../../interop/tools.ts";
import { makeStoreDirectory } from "../../support/empty-store.ts";
import type { Place } from "../../support/on-both.ts";
import { hashCheaply, password } from "../../support/passwords.ts";
import { main } from "../../support/program.ts";
import { type Run, runHere } from "../../support/run-here.ts";

/** Creates a SQLite store and the settings that point a command to it. */
export async function makeSettings() {
  const directory = await makeStoreDirectory();
  return { directory, settings: ["--data-dir", directory] };
}

/** Users who may log in on a SQLite store. */
export function countUsers({ directory }: { readonly directory: string }): number {
  using database = new DatabaseSync(join(directory, "qsp.db"), { readOnly: true });
  return Number(database.prepare("select count(*) as count from users").get()?.count);
}

/**
 * Runs a command to its end in this process.
 *
 * @param input its standard input
 */
export function runCommand(
  { settings }: Pick<Place, "settings">,
  words: readonly string[],
  input = "",
): Promise<Run> {
  return runHere([...words, ...settings], { env: process.env, stdin: input });
}

/**
 * Runs a command to its end as a separate program.
 *
 * @param input its standard input
 */
export function runProgram(
  place: Pick<Place, "settings">,
  words: readonly string[],
  input = "",
): Promise<Result> {
  return run(process.execPath, [main, ...words, ...place.settings], input);
}

/** A pseudo-terminal for a program: it forwards typed input and shows the output. */
const pty = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/** Runs a program at a terminal, with Python's `pty` module. */
export function runAtTerminal(program: string, args: readonly string[]) {
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
    /** Everything that the terminal shows, including echoed input. */
    shown: () => text,
    /** Types once the terminal shows some text; "\r" is the Enter key. */
    async typeAfter(prompt: string, keys: string): Promise<void> {
      let at = text.indexOf(prompt, typedUpTo);
      for (; at < 0; at = text.indexOf(prompt, typedUpTo)) {
        if (child.exitCode !== null) throw new Error(`it ended before "${prompt}": ${text}`);
        await once(child, "shown");
      }
      typedUpTo = at + prompt.length;
      child.stdin.write(keys);
    },
    /** The exit code. */
    ended,
  };
}

/** Runs a command at a terminal. */
export function runCommandAtTerminal(place: Pick<Place, "settings">, ...words: string[]) {
  return runAtTerminal(process.execPath, [main, ...words, ...place.settings]);
}

/** Starts a server with `--auth token` in this process; several can share one place. */
export async function startTokenServer({ settings }: Pick<Place, "settings">) {
  const server = await startAccessServer({ atEnd: onTestFinished, database: settings });
  const { tokens } = server.connect();
  return {
    /** Stops the server; later calls do nothing. */
    stop: server.close,
    /** Adds a user with the tests' password. */
    addUser: (name: string, role: UserRole = "user") =>
      server.office.users.add({ name, role, passwordHash: hashCheaply(password) }, new Date()),
    logIn: async (username: string, given = password) =>
      (await tokens.issueToken({ username, password: given })).token,
    /** Makes a call that requires a token, and returns the token's user. */
    useToken: async (token: string) =>
      (await server.connect(`Bearer ${token}`).tokens.getSecureData({})).subject,
    /** The IDs of the token verification keys that the server lists. */
    listKeyIds: async () => (await tokens.getJwks({})).keys.map(({ kid }) => kid),
  };
}

/** The ID of the key that signed a token. */
export function keyIdOf(token: string): string {
  return JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()).kid;
}
