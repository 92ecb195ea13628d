/**
 * Follows a page of documentation like a reader: types its commands into one shell, block by block, and starts the
 * servers that it starts.
 *
 * ```sh       is pasted into the shell; a ```text or ```json block right behind it is the expected output, where …
 *             matches anything and whitespace does not count.
 * ```console  shows commands behind "$ "; `npm start`, `npm run gateway` and `envoy -c envoy/…`, with variables before
 *             them where needed, start the servers for the blocks after them.
 *
 * Only the ports change: the test uses free ones.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { findEnvoy, startEdge } from "../../envoy/edge.ts";
import { findQuietPort } from "../support/find-quiet-port.ts";
import { password } from "../support/passwords.ts";
import { findPostgres } from "../support/postgres-server.ts";
import { launch, readUntil } from "../support/start-server.ts";
import { isMissing, isOpensslTooOld } from "./tools.ts";

const root = join(import.meta.dirname, "../..");
/** The reader's working files: commands and output. */
const notesFolder = ".notes";

/** One step of a reader. */
export interface Step {
  readonly kind: "paste" | "start";
  /** Heading of its section. */
  readonly section: string;
  /** Line number, and the first words. */
  readonly name: string;
  readonly text: string;
  /** The printed output; undefined if the page shows none. */
  readonly printed: string | undefined;
}

/** Result of a step. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  /** Lines on standard error. */
  readonly complaints: readonly string[];
}

/** What a page needs in addition to the repository. */
export interface Surroundings {
  /** Address of a server that runs before the page begins. */
  readonly authority?: string;
  /** A database on a PostgreSQL server, as a superuser; the page creates its own databases there. */
  readonly databaseUrl?: string;
}

const startLine = /^\$ ((?:[A-Z_]+=\S+ )*(?:npm (?:start|run gateway)(?: .*)?|envoy -c envoy\/[\w.-]+))$/gm;
/** Address of a service that the reader writes. */
const ownServicePort = "9000";

/** Returns the steps of a page, in order. */
export function readSteps(page: string): Step[] {
  const blocks = [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  return blocks.flatMap((block, i): Step[] => {
    const [, kind = "", text = ""] = block;
    const before = page.slice(0, block.index);
    const section = /.*^(## .*?)$/ms.exec(before)?.[1] ?? "";
    const place = `line ${before.split("\n").length}`;
    if (kind === "sh") {
      const [first = ""] = text.split("\n");
      const printed = printedBy(page, blocks, i);
      return [{ kind: "paste", section, name: `${place}: ${first}`, text, printed }];
    }
    if (kind !== "console") return [];
    return [...text.matchAll(startLine)].map(([, start = ""]) => {
      return { kind: "start", section, name: `${place}: ${start}`, text: start, printed: undefined };
    });
  });
}

function printedBy(page: string, blocks: readonly RegExpExecArray[], index: number): string | undefined {
  const [block, next] = [blocks[index], blocks[index + 1]];
  if (block === undefined || next === undefined || !/text|json/.test(next[1] ?? "")) return undefined;
  const between = page.slice(block.index + block[0].length, next.index);
  return between.trim() === "" ? next[2] : undefined;
}

/** Lists the missing programs for each step; a section stops at a server that cannot start. */
export function listMissing(steps: readonly Step[]): string[][] {
  return steps.map(({ kind, section, text }) => {
    const starts = steps.filter((step) => step.kind === "start" && step.section === section);
    const needs = [...(kind === "paste" ? starts : []), { text }].flatMap((step) => neededBy(step.text));
    return [...new Set(needs)].filter(isAbsent);
  });
}

function neededBy(text: string): string[] {
  const programs = /^grpcurl /m.test(text) ? ["grpcurl"] : [];
  if (isGateway(text) || isEnvoy(text)) programs.push("envoy");
  if (/^psql |QSP_DATABASE_URL/m.test(text)) programs.push("psql", "PostgreSQL");
  if (/^openssl /m.test(text)) programs.push("openssl 3.5");
  // Sections about interfaces: each step needs those before it.
  if (/\b(?:ip netns|wireguard up) /.test(text)) programs.push("ip", "wg", "wireguard", "root", "tun");
  for (const program of "python3 go protoc grpc_tools_ruby_protoc ruby mvn cargo promtool systemd-analyze age age-keygen sops".split(
    " ",
  ))
    if (new RegExp(`^(?:\\w+=\\S+ )*${program} `, "m").test(text)) programs.push(program);
  return programs;
}

function isGateway(start: string): boolean {
  return /^(\S+=\S+ )*npm run gateway/.test(start);
}

function isEnvoy(start: string): boolean {
  return start.startsWith("envoy -c ");
}

/** Whether this machine lacks a program, or something else that tests need. In the gate, nothing may be missing. */
export function isAbsent(need: string): boolean {
  if (need === "openssl 3.5") return isOpensslTooOld();
  const finders: Readonly<Record<string, () => boolean>> = {
    envoy: () => findEnvoy() !== undefined,
    PostgreSQL: () => findPostgres() !== undefined,
    root: () => process.getuid?.() === 0,
    tun: () => existsSync("/dev/net/tun"),
  };
  const find = finders[need];
  return find === undefined ? isMissing(need) : process.env.QSP_TEST_REQUIRE_ALL !== "1" && !find();
}

/** Folders of a checkout that a reader's commands write to. */
const writtenFolders = ["data", "try"];

/**
 * Creates a checkout in which a page may leave files: links to everything except the folders that a reader's commands
 * write to. Git knows the original files.
 *
 * @param usedData the folder `data` of an earlier checkout; omit it for a new store
 */
export function makeCheckout(directory: string, usedData?: string): string {
  for (const name of readdirSync(root)) {
    if (!writtenFolders.includes(name) && !name.startsWith("."))
      symlinkSync(join(root, name), join(directory, name));
  }
  for (const name of [".gitignore", "try/.gitignore"]) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    copyFileSync(join(root, name), join(directory, name));
  }
  if (usedData !== undefined && existsSync(usedData)) symlinkSync(usedData, join(directory, "data"));
  if (isGitMissing) return directory;
  git(directory, "init", "--quiet");
  writeFileSync(join(directory, ".git/info/exclude"), `${notesFolder}/\n/data\n`);
  git(directory, "add", "--all");
  return directory;
}

/** Whether to skip tests that need git. */
export const isGitMissing = isMissing("git");

/** Lists the files that `git status` reports in a checkout after a page: new, changed or deleted. */
export function listStrayFiles(checkout: string): string[] {
  const shown = [
    git(checkout, "ls-files", "--others", "--exclude-standard"),
    git(checkout, "diff", "--name-only"),
  ];
  return shown.flatMap((lines) => lines.split("\n")).filter((line) => line !== "");
}

function git(directory: string, ...args: string[]): string {
  return execFileSync("git", args, { cwd: directory, encoding: "utf8" });
}

/**
 * Takes the steps of a page in a checkout.
 *
 * @param missing from listMissing; steps with missing programs are skipped
 * @returns the result of each step; undefined for steps that were skipped or not reached
 */
export async function follow(
  checkout: string,
  steps: readonly Step[],
  missing: readonly string[][],
  surroundings: Surroundings,
): Promise<(Outcome | undefined)[]> {
  const reader = createReader(checkout, surroundings);
  const outcomes: (Outcome | undefined)[] = [];
  try {
    for (const [i, step] of steps.entries()) {
      outcomes.push(missing[i]?.length === 0 ? await reader[step.kind](step.text) : undefined);
    }
  } finally {
    await reader.leave();
  }
  return outcomes;
}

/** Compares output with the page: whitespace does not count, and … matches anything. */
export function isAsPrinted(stdout: string, printed: string): boolean {
  const pattern = printed
    .replaceAll(/\s/g, "")
    .split("…")
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    .join(".*");
  return new RegExp(`^${pattern}$`, "s").test(stdout.replaceAll(/\s/g, ""));
}

/** A reader at one shell, with a terminal for each server. */
function createReader(checkout: string, { authority, databaseUrl }: Surroundings) {
  const notes = join(checkout, notesFolder);
  mkdirSync(notes);
  writeFileSync(join(notes, "typed"), `${password}\n`);
  const database = databaseUrl === undefined ? undefined : new URL(databaseUrl);
  const env = { ...cleanEnvironment(), ...(database && postgresEnvironment(database)) };
  const stdio = ["pipe", "ignore", "ignore", "pipe"] as const;
  // In its own process group, together with the page's background processes.
  const shell = spawn("sh", ["-e"], { cwd: checkout, env, stdio: [...stdio], detached: true });
  shell.stdin?.on("error", () => {}); // Nobody reads after the shell has exited.
  const answers = createInterface({ input: shell.stdio[3] as Readable })[Symbol.asyncIterator]();
  const ended = once(shell, "close");
  const ports = new Map<string, string>();
  if (authority !== undefined) ports.set("8080", new URL(`http://${authority}`).port);
  if (database !== undefined) ports.set("5432", database.port);
  const servers = new Map<string, Started>();
  let count = 0;
  const withPorts = (text: string): string =>
    text.replaceAll(/(127\.0\.0\.1|localhost):(\d+)/g, (all, host, port) =>
      ports.has(port) ? `${host}:${ports.get(port)}` : all,
    );
  const asPrinted = (text: string): string =>
    [...ports].reduce((so, [printed, real]) => so.replaceAll(`:${real}`, `:${printed}`), text);

  return {
    async paste(text: string): Promise<Outcome> {
      count += 1;
      if (text.includes(`127.0.0.1:${ownServicePort}`) && !ports.has(ownServicePort))
        ports.set(ownServicePort, String(await findQuietPort()));
      const path = join(notes, String(count));
      // The client's default URL, which no command mentions.
      const url = `export QSP_URL=${withPorts("http://127.0.0.1:8080")}\n`;
      writeFileSync(path, url + withPorts(text));
      // A failed command ends the shell and its output, because no background process holds the pipes open.
      shell.stdin?.write(`. ${path} <${notes}/typed >${path}.out 2>${path}.err 3>&-; echo $? >&3\n`);
      const { value: code = await ended.then(([code]) => code) } = await answers.next();
      const read = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "");
      return {
        code: Number(code),
        stdout: asPrinted(read(`${path}.out`)),
        complaints: read(`${path}.err`).split("\n").filter(isComplaint),
      };
    },
    async start(text: string): Promise<Outcome> {
      const printedPort = isGateway(text) || isEnvoy(text) ? "8443" : "8080";
      await servers.get(printedPort)?.stop();
      const server = isEnvoy(text)
        ? await startEnvoy(checkout, text, ports)
        : await start(checkout, withPorts(text), env);
      if (typeof server === "string") return { code: 1, stdout: "", complaints: server.split("\n") };
      servers.set(printedPort, server);
      ports.set(printedPort, server.port);
      return { code: 0, stdout: asPrinted(server.stdout), complaints: [] };
    },
    async leave(): Promise<void> {
      shell.stdin?.end();
      await ended;
      killGroup(shell);
      await Promise.all([...servers.values()].map((server) => server.stop()));
    },
  };
}

/** Kills the background processes of a shell. */
function killGroup({ pid = 0 }: ChildProcess): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // No process remains.
  }
}

/**
 * Lines that are not errors: npx warns about npm settings, long work shows progress, Go lists downloads, pip suggests an
 * update, and protoc skips extensions in Ruby. Client verbs print hints on standard error, because standard output is for the secret.
 */
function isComplaint(line: string): boolean {
  if (
    /^go: (creating|to add|finding|found|downloading) |^\tgo mod tidy$|^\[notice\] |Extensions are not yet supported|shown only once/.test(
      line,
    )
  )
    return false;
  return line !== "" && !line.startsWith("npm warn") && !/^\s*\d+ of \d+ [\w ]+$/.test(line);
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const own = ([name]: [string, unknown]): boolean => name === "QSP_ENVOY" || !/^(QSP_|npm_)/.test(name);
  return Object.fromEntries(Object.entries(process.env).filter(own));
}

/** Lets `psql` connect as the server's superuser, like the owner of the PostgreSQL installation. */
function postgresEnvironment({ hostname, port, username, password }: URL): NodeJS.ProcessEnv {
  return { PGHOST: hostname, PGPORT: port, PGUSER: username, PGPASSWORD: password, PGDATABASE: "postgres" };
}

/** A running server program. */
interface Started {
  readonly port: string;
  readonly stdout: string;
  stop(): Promise<void>;
}

/** Starts what `npm start` or `npm run gateway` starts, on a free port, and waits until it is ready or has failed. */
async function start(checkout: string, command: string, env: NodeJS.ProcessEnv): Promise<Started | string> {
  const [, variables = "", given = ""] =
    /^((?:\S+=\S+ )*)npm (?:start|run gateway)(?: --)?(.*)$/.exec(command) ?? [];
  const args = given.trim() === "" ? [] : given.trim().split(/ +/);
  const program = isGateway(command) ? ["envoy/gateway.ts"] : ["dist/main.js", "serve"];
  // Before the flags of the page, because "--" ends them.
  const { child, exit, output } = launch(["--port", "0", ...args], undefined, {
    command: [process.execPath, ...program],
    cwd: checkout,
    env: {
      ...env,
      ...Object.fromEntries([...variables.matchAll(/(\w+)=(\S+)/g)].map(([, ...pair]) => pair)),
    },
  });
  const port = await Promise.race([
    readUntil(child, () => /ready on https?:\/\/[^/\s]+:(\d+)\n/.exec(output.stdout)?.[1]),
    exit.then(() => undefined),
  ]);
  if (port === undefined) return output.stderr;
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await exit;
  };
  return { port, stdout: output.stdout, stop };
}

/**
 * Starts Envoy with a configuration of envoy/, with different ports and the certificate of `qsp ca issue`.
 *
 * @param ports printed → actual
 */
async function startEnvoy(
  checkout: string,
  command: string,
  ports: ReadonlyMap<string, string>,
): Promise<Started | string> {
  const backendOf = (printed: string): string[] => [`127.0.0.1:${ports.get(printed) ?? printed}`];
  try {
    const edge = await startEdge({
      configuration: command.replace("envoy -c envoy/", ""),
      backends: { servers: backendOf("8080"), orders: backendOf(ownServicePort) },
      tlsDirectory: join(checkout, "data/tls"),
      onLog: () => {},
    });
    return { port: new URL(edge.url).port, stdout: "", stop: async () => void (await edge.stop()) };
  } catch (error) {
    return String(error);
  }
}
