/**
 * PostgreSQL servers for tests, each with a directory of its own.
 *
 * A second process, the supervisor, runs PostgreSQL in that directory. Its standard input is a pipe from here:
 * when that closes, because of close() or because this process was killed, it stops PostgreSQL and removes the
 * directory. It is this same file, run as a program: node postgres-server.ts <directory>
 */
import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import {
  chownSync,
  existsSync,
  globSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { Client } from "pg";
import { quickDirectory } from "./quick-directory.ts";

const minMajorVersion = 15;
/** What tests say when findPostgres finds nothing. */
export const postgresNeeded = `needs PostgreSQL ${minMajorVersion} or newer`;

const user = "postgres";
const maxConnections = 200;
/** How often the state of a starting server is looked at. */
const pollMs = 20;
const maxPortAttempts = 20;
/** PostgreSQL 15 documentation, section 19.5, "Shutting Down the Server". */
const stopSignals = { fast: "SIGINT", immediate: "SIGQUIT" } as const;

/** How a server is started. */
export interface PostgresOptions {
  /**
   * False turns fsync off and keeps the data in memory where there is room, for tests that are not about what survives;
   * the default is true.
   */
  readonly durable?: boolean;
}

/** A PostgreSQL server on 127.0.0.1 that lets everyone in and dies with this process. */
export interface PostgresServer {
  /** The URL of a database, whether it exists or not. */
  url(database: string): string;
  /** Creates an empty database with a random name; returns its URL. */
  createDatabase(): Promise<string>;
  /** Removes a database, by its URL, and ends all connections to it. */
  dropDatabase(url: string): Promise<void>;
  /**
   * Stops the server; its data stay. "fast", the default, ends all connections and writes everything out;
   * "immediate" is a crash, after which start() recovers from the write-ahead log.
   */
  stop(mode?: "fast" | "immediate"): Promise<void>;
  /** Starts a stopped server again, on the same port with the same data. */
  start(): Promise<void>;
  /** Stops the server for good and removes its data. */
  close(): Promise<void>;
}

/** The directory of the newest installed PostgreSQL's programs; undefined when there is none from version 15 on. */
export function findPostgres(): string | undefined {
  const directories = [
    ...(process.env.PATH ?? "").split(delimiter).filter((directory) => directory !== ""),
    // Debian keeps the programs of a server off the PATH.
    ...globSync("/usr/lib/postgresql/*/bin"),
  ];
  return directories
    .filter((directory) => ["initdb", "postgres"].every((program) => existsSync(join(directory, program))))
    .map((directory) => ({ directory, version: readMajorVersion(directory) }))
    .filter(({ version }) => version >= minMajorVersion)
    .sort((one, other) => other.version - one.version)[0]?.directory;
}

/** 0 when it does not say. */
function readMajorVersion(binDirectory: string): number {
  try {
    const version = execFileSync(join(binDirectory, "postgres"), ["--version"], { encoding: "utf8" });
    return Number(/\(PostgreSQL\) (\d+)/.exec(version)?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Starts a server without databases of ours, and waits until it accepts connections. */
export async function startPostgres({ durable = true }: PostgresOptions = {}): Promise<PostgresServer> {
  const binDirectory = findPostgres();
  if (binDirectory === undefined) throw new Error(postgresNeeded);
  const directory = makeDirectory(durable ? tmpdir() : quickDirectory);
  const dataDirectory = join(directory, "data");
  const supervisor = startSupervisor(directory);

  const runInitdb = async (): Promise<void> => {
    // --no-sync: a machine that loses power is not what tests are about.
    const args = ["-D", dataDirectory, "-U", user, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
    const { ended } = await supervisor.run(join(binDirectory, "initdb"), args);
    const how = await ended;
    if (how !== "0") throw new Error(`initdb ended with ${how}: ${readLog(directory)}`);
  };

  const launch = async (port: number): Promise<Run> => {
    const settings = {
      listen_addresses: "127.0.0.1",
      port,
      unix_socket_directories: "",
      max_connections: maxConnections,
      fsync: durable ? "on" : "off",
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const args = ["-D", dataDirectory, ...flags];
    const run = await supervisor.run(join(binDirectory, "postgres"), args);
    const early = run.ended.then((how) => {
      throw new Error(`postgres ended with ${how} before it was ready: ${readLog(directory)}`);
    });
    early.catch(() => {}); // Only while it starts is its end a failure.
    while (!isReady(dataDirectory, run.pid)) await Promise.race([early, setTimeout(pollMs)]);
    return run;
  };

  try {
    await runInitdb();
    let { port, run } = await launchOnFreePort(launch);
    const url = (database: string): string => `postgres://${user}@127.0.0.1:${port}/${database}`;
    return {
      url,
      createDatabase: () => createDatabase(url),
      dropDatabase: (dropped) =>
        administer(url, `DROP DATABASE IF EXISTS ${new URL(dropped).pathname.slice(1)} WITH (FORCE)`),
      stop: async (mode = "fast") => {
        supervisor.kill(stopSignals[mode]);
        await run.ended;
      },
      start: async () => {
        run = await launch(port);
      },
      close: () => supervisor.close(),
    };
  } catch (error) {
    await supervisor.close();
    throw error;
  }
}

/** Makes an empty directory for the user that PostgreSQL will run as, since it refuses to run as root. */
function makeDirectory(parent: string): string {
  const account = process.getuid?.() === 0 ? findAccount() : undefined;
  const directory = mkdtempSync(join(parent, "qsp-test-postgres-"));
  if (account !== undefined) chownSync(directory, account.uid, account.gid);
  return directory;
}

function findAccount(): { readonly uid: number; readonly gid: number } {
  const readId = (flag: "-u" | "-g", name: string): number =>
    Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: "pipe" }));
  for (const name of ["postgres", "nobody"]) {
    try {
      return { uid: readId("-u", name), gid: readId("-g", name) };
    } catch {} // There is no such user.
  }
  throw new Error("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as");
}

/** Tells whether the server of this process id accepts connections, from what it notes in its own directory. */
function isReady(dataDirectory: string, pid: number): boolean {
  try {
    // Line 1 is the process id, line 8 the state; a server that was killed leaves its file behind.
    const lines = readFileSync(join(dataDirectory, "postmaster.pid"), "utf8").split("\n");
    return lines[0] === String(pid) && lines[7]?.trim() === "ready";
  } catch {
    return false;
  }
}

/** PostgreSQL cannot choose a port itself, and one that is free now may be taken before it listens. */
async function launchOnFreePort(
  launch: (port: number) => Promise<Run>,
): Promise<{ readonly port: number; run: Run }> {
  for (let attempt = 1; ; attempt++) {
    // Below the ports that systems give to outgoing connections (Linux from 32768, others from 49152): while the
    // server is stopped, one of those could take its port, even a client's own attempt to connect to it.
    const port = randomInt(15_000, 32_000);
    try {
      return { port, run: await launch(port) };
    } catch (error) {
      if (attempt === maxPortAttempts || !/Address already in use/.test(String(error))) throw error;
    }
  }
}

async function createDatabase(url: (database: string) => string): Promise<string> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  await administer(url, `CREATE DATABASE ${name}`);
  return url(name);
}

/** Runs a statement about databases. */
async function administer(url: (database: string) => string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url("postgres") });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

const logPath = (directory: string): string => join(directory, "log");

function readLog(directory: string): string {
  return existsSync(logPath(directory)) ? readFileSync(logPath(directory), "utf8").slice(-2000) : "(no log)";
}

/** A program that the supervisor runs. */
interface Run {
  readonly pid: number;
  /** Its exit code or signal, as text, when it and all that it started have ended. */
  readonly ended: Promise<string>;
}

interface Supervisor {
  /** Runs a program; the one before must have ended. */
  run(program: string, args: readonly string[]): Promise<Run>;
  /** Sends a signal to the program that runs, if any. */
  kill(signal: NodeJS.Signals): void;
  /** Ends the program and removes the directory; returns when both are gone. */
  close(): Promise<void>;
}

/** A line to the supervisor. */
type Command =
  | { readonly program: string; readonly args: readonly string[] }
  | { readonly kill: NodeJS.Signals };

function startSupervisor(directory: string): Supervisor {
  const child = spawn(process.execPath, [import.meta.filename, directory], {
    // Ctrl-C at a terminal reaches all processes of the test run; this one is to end after them.
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  closed.catch(() => {}); // close() tells.
  child.stdin.on("error", () => {}); // It has ended: readAnswer tells.
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const give = (command: Command): void => void child.stdin.write(`${JSON.stringify(command)}\n`);
  const readAnswer = async (): Promise<string> => {
    const { value, done } = await answers.next();
    return done ? "its supervisor" : value;
  };
  let isBusy = false;
  return {
    run: async (program, args) => {
      if (isBusy) throw new Error(`a program runs in ${directory} already`);
      isBusy = true;
      give({ program, args });
      const pid = Number(await readAnswer());
      const ended = readAnswer().finally(() => {
        isBusy = false;
      });
      return { pid, ended };
    },
    kill: (signal) => give({ kill: signal }),
    close: async () => {
      child.stdin.end();
      const [code] = await closed;
      if (code !== 0) throw new Error(`the supervisor of ${directory} ended with ${code}`);
    },
  };
}

/**
 * The supervisor: takes orders until the pipe to its owner closes. Answers to a program with its process id, and
 * with how it ended.
 */
async function supervise(directory: string): Promise<void> {
  process.stdout.on("error", () => {}); // The owner may be gone.
  // Whoever asks all processes to end, as a container that stops, asks the owner as well.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

  const { uid, gid } = statSync(directory);
  const log = openSync(logPath(directory), "a");
  const options: SpawnOptions = {
    cwd: directory,
    env: { ...process.env, LC_ALL: "C" }, // launchOnFreePort reads an error message.
    // All that the program starts inherits the pipe, so "close" comes when the last of them has ended.
    stdio: ["ignore", log, log, "pipe"],
    ...(process.getuid?.() === 0 ? { uid, gid } : {}),
  };
  let running: { readonly child: ChildProcess; readonly ended: Promise<void> } | undefined;
  for await (const line of createInterface({ input: process.stdin })) {
    const command: Command = JSON.parse(line);
    if ("kill" in command) {
      running?.child.kill(command.kill);
      continue;
    }
    const child = spawn(command.program, command.args, options);
    process.stdout.write(`${child.pid}\n`);
    const ended = once(child, "close").then(
      ([code, signal]) => void process.stdout.write(`${signal ?? code}\n`),
      (error) => void process.stdout.write(`${error}\n`),
    );
    running = { child, ended };
  }
  running?.child.kill(stopSignals.immediate);
  await running?.ended;
  rmSync(directory, { recursive: true, force: true });
}

if (import.meta.main) await supervise(process.argv[2] ?? "");
