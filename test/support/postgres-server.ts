/**
 * PostgreSQL servers for tests, each with its own directory.
 *
 * A second process, the supervisor, runs PostgreSQL in that directory. Its standard input is a pipe from this
 * process: when the pipe closes, because of close() or because this process was killed, the supervisor stops
 * PostgreSQL and removes the directory. The supervisor is this same file, run as a program: node postgres-server.ts
 * <directory>
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
/** Title suffix of tests when findPostgres finds nothing. */
export const postgresNeeded = `needs PostgreSQL ${minMajorVersion} or newer`;

const user = "postgres";
const maxConnections = 200;
/** Interval for polling the state of a starting server. */
const pollMs = 20;
const maxPortAttempts = 20;
/** PostgreSQL 15 documentation, section 19.5, "Shutting Down the Server". */
const stopSignals = { fast: "SIGINT", immediate: "SIGQUIT" } as const;

/** Options of a server. */
export interface PostgresOptions {
  /**
   * False turns fsync off and keeps the data in memory if there is room, for tests that do not test durability; true
   * by default.
   */
  readonly durable?: boolean;
}

/** A PostgreSQL server on 127.0.0.1 that accepts everyone and stops when this process ends. */
export interface PostgresServer {
  /** Returns the URL of a database, whether it exists or not. */
  url(database: string): string;
  /** Creates an empty database with a random name, and returns its URL. */
  createDatabase(): Promise<string>;
  /** Drops a database by its URL, and closes all connections to it. */
  dropDatabase(url: string): Promise<void>;
  /**
   * Stops the server; its data remain. "fast", the default, closes all connections and flushes everything;
   * "immediate" is a crash, after which start() recovers from the write-ahead log.
   */
  stop(mode?: "fast" | "immediate"): Promise<void>;
  /** Restarts a stopped server on the same port with the same data. */
  start(): Promise<void>;
  /** Stops the server for good and deletes its data. */
  close(): Promise<void>;
}

/** Returns the program directory of the newest installed PostgreSQL; undefined without version 15 or newer. */
export function findPostgres(): string | undefined {
  const directories = [
    ...(process.env.PATH ?? "").split(delimiter).filter((directory) => directory !== ""),
    // Debian keeps server programs off the PATH.
    ...globSync("/usr/lib/postgresql/*/bin"),
  ];
  return directories
    .filter((directory) => ["initdb", "postgres"].every((program) => existsSync(join(directory, program))))
    .map((directory) => ({ directory, version: readMajorVersion(directory) }))
    .filter(({ version }) => version >= minMajorVersion)
    .sort((one, other) => other.version - one.version)[0]?.directory;
}

/** Returns 0 if the version is unknown. */
function readMajorVersion(binDirectory: string): number {
  try {
    const version = execFileSync(join(binDirectory, "postgres"), ["--version"], { encoding: "utf8" });
    return Number(/\(PostgreSQL\) (\d+)/.exec(version)?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Starts a server without any test databases, and waits until it accepts connections. */
export async function startPostgres({ durable = true }: PostgresOptions = {}): Promise<PostgresServer> {
  const binDirectory = findPostgres();
  if (binDirectory === undefined) throw new Error(postgresNeeded);
  const directory = makeDirectory(durable ? tmpdir() : quickDirectory);
  const dataDirectory = join(directory, "data");
  const supervisor = startSupervisor(directory);

  const runInitdb = async (): Promise<void> => {
    // --no-sync: tests do not cover power failures.
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
    early.catch(() => {}); // Its end is a failure only during startup.
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

/** Creates an empty directory for the user that PostgreSQL will run as: it refuses to run as root. */
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
    } catch {} // The user does not exist.
  }
  throw new Error(
    "PostgreSQL refuses to run as root, and neither the user postgres nor nobody exists to run it",
  );
}

/** Returns whether the server with this process ID accepts connections, based on its own status file. */
function isReady(dataDirectory: string, pid: number): boolean {
  try {
    // Line 1 is the process ID, line 8 the state; a killed server leaves its file behind.
    const lines = readFileSync(join(dataDirectory, "postmaster.pid"), "utf8").split("\n");
    return lines[0] === String(pid) && lines[7]?.trim() === "ready";
  } catch {
    return false;
  }
}

/** PostgreSQL cannot pick a port itself, and a free port may be taken before PostgreSQL listens. */
async function launchOnFreePort(
  launch: (port: number) => Promise<Run>,
): Promise<{ readonly port: number; run: Run }> {
  for (let attempt = 1; ; attempt++) {
    // Below the ephemeral ports (Linux from 32768, others from 49152): while the server is stopped, an outgoing
    // connection could take its port, even a client's own attempt to connect to it.
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

/** Runs an administrative statement about databases. */
async function administer(url: (database: string) => string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url("postgres") });
  client.on("error", () => {}); // The server may stop at any time. The statement then fails as well.
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

/** The process that runs programs in the directory. */
interface Run {
  readonly pid: number;
  /** The exit code or signal, as text, once the program and all its children have ended. */
  readonly ended: Promise<string>;
}

/** A command line to the supervisor. */
type Command =
  | { readonly program: string; readonly args: readonly string[] }
  | { readonly kill: NodeJS.Signals };

function startSupervisor(directory: string) {
  const child = spawn(process.execPath, [import.meta.filename, directory], {
    // Ctrl-C at a terminal reaches all processes of the test run; the supervisor must outlive them.
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  closed.catch(() => {}); // Reported by close().
  child.stdin.on("error", () => {}); // It has ended; readAnswer reports it.
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const give = (command: Command): void => void child.stdin.write(`${JSON.stringify(command)}\n`);
  const readAnswer = async (): Promise<string> => {
    const { value, done } = await answers.next();
    return done ? "its supervisor" : value;
  };
  let isBusy = false;
  return {
    /** Runs a program; the previous one must have ended. */
    run: async (program: string, args: readonly string[]): Promise<Run> => {
      if (isBusy) throw new Error(`a program runs in ${directory} already`);
      isBusy = true;
      give({ program, args });
      const pid = Number(await readAnswer());
      const ended = readAnswer().finally(() => {
        isBusy = false;
      });
      return { pid, ended };
    },
    /** Sends a signal to the running program, if any. */
    kill: (signal: NodeJS.Signals): void => give({ kill: signal }),
    /** Ends the program and removes the directory; resolves when both are done. */
    close: async (): Promise<void> => {
      child.stdin.end();
      const [code] = await closed;
      if (code !== 0) throw new Error(`the supervisor of ${directory} ended with ${code}`);
    },
  };
}

/**
 * The supervisor: executes commands until the pipe to its owner closes. Reports a program's process ID when it
 * starts, and how it ended.
 */
async function supervise(directory: string): Promise<void> {
  process.stdout.on("error", () => {}); // The owner may have ended.
  // A signal to all processes, as when a container stops, also reaches the owner, which closes the pipe.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

  const { uid, gid } = statSync(directory);
  const log = openSync(logPath(directory), "a");
  const options: SpawnOptions = {
    cwd: directory,
    env: { ...process.env, LC_ALL: "C" }, // launchOnFreePort reads an error message.
    // All children of the program inherit the pipe, so "close" comes when the last of them has ended.
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
