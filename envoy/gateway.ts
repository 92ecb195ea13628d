/**
 * Runs servers behind Envoy: `npm run gateway -- [--port 8443] [--replicas 1] [-- settings of the servers]`.
 *
 * Makes a private CA and a certificate if there is none, or if it expires soon. A signal first drains Envoy and then
 * stops the servers; a second signal ends everything at once.
 */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { describeFirstSteps } from "../src/first-calls.ts";
import { type Edge, EnvoyMissing, findEnvoy, startEdge } from "./edge.ts";
import { type GatewayServer, runCommand, ServerEnded, startGatewayServer } from "./servers.ts";

/** An error that the operator can fix. */
class CannotStart extends Error {}

/** Exit code for an error that the operator can fix, as in src/main.ts. */
const refusedToStart = 2;

/** Envoy listens on loopback only, because anyone may call while the servers run with --auth open. */
const address = "127.0.0.1";

/** The signals that stop it: from Ctrl-C, a service manager, or a closed terminal. */
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

interface GatewayOptions {
  readonly port: number;
  readonly replicas: number;
  readonly serverArgs: readonly string[];
  readonly tlsDirectory: string;
  readonly auth: "open" | "token";
}

async function main(): Promise<void> {
  // Without a handler, a signal would end only this process and leave its children running.
  const stopEarly = (): never => process.exit(1);
  for (const signal of signals) process.on(signal, stopEarly);
  if (findEnvoy() === undefined) throw new EnvoyMissing();
  const options = readOptions(process.argv.slice(2), process.env);
  await requireFreePort(options.port);
  await makeCertificate(options);
  const servers = await startServers(options);
  const edge = await startEdge({
    backends: servers.map(({ authority }) => authority),
    tlsDirectory: options.tlsDirectory,
    address,
    port: options.port,
  });
  for (const signal of signals) process.off(signal, stopEarly);
  stopOnSignal(edge, servers);
  process.stdout.write(describeStart(edge, options));
}

function readOptions(args: readonly string[], env: NodeJS.ProcessEnv): GatewayOptions {
  const end = args.includes("--") ? args.indexOf("--") : args.length;
  const serverArgs = args.slice(end + 1);
  const { port, replicas } = readFlags(args.slice(0, end));
  const hasDatabase = flagValueOf("--database-url", serverArgs) ?? env.QSP_DATABASE_URL;
  if (replicas > 1 && !hasDatabase)
    throw new CannotStart(
      "--replicas: several servers share a database; give -- --database-url postgres://…",
    );
  const dataDir = flagValueOf("--data-dir", serverArgs) ?? env.QSP_DATA_DIR ?? "data";
  // The servers refuse any other value.
  const auth = (flagValueOf("--auth", serverArgs) ?? env.QSP_AUTH) === "token" ? "token" : "open";
  return { port, replicas, serverArgs, tlsDirectory: join(dataDir, "tls"), auth };
}

function readFlags(args: readonly string[]): { port: number; replicas: number } {
  try {
    const options = { port: { type: "string" }, replicas: { type: "string" } } as const;
    const { port = "8443", replicas = "1" } = parseArgs({ args: [...args], options }).values;
    return { port: toInteger("port", port, 0, 65_535), replicas: toInteger("replicas", replicas, 1, 64) };
  } catch (error) {
    if (error instanceof CannotStart) throw error;
    const [sentence] = String(error instanceof Error ? error.message : error).split(". ");
    throw new CannotStart(`${sentence}; put settings of the servers after --`);
  }
}

function toInteger(name: string, text: string, min: number, max: number): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= min && number <= max) return number;
  throw new CannotStart(`--${name}: "${text}" is not a whole number from ${min} to ${max}`);
}

/** The value of a flag, as "--name value" or "--name=value". */
function flagValueOf(flag: string, args: readonly string[]): string | undefined {
  const index = args.findLastIndex((arg) => arg === flag || arg.startsWith(`${flag}=`));
  if (index < 0) return undefined;
  return args[index] === flag ? args[index + 1] : args[index]?.slice(flag.length + 1);
}

/** Two Envoys can listen on one port and share its calls; here, that would be a mistake. */
async function requireFreePort(port: number): Promise<void> {
  const server = createServer().listen(port, address);
  try {
    await once(server, "listening");
  } catch {
    throw new CannotStart(
      `port ${port} of ${address} is in use or not allowed for this user; choose another port with --port`,
    );
  }
  server.close();
  await once(server, "close");
}

async function makeCertificate({ tlsDirectory }: GatewayOptions): Promise<void> {
  if (isGoodForToday(join(tlsDirectory, "gateway.crt"))) return;
  const dataDir = join(tlsDirectory, "..");
  if (!existsSync(join(tlsDirectory, "ca.crt"))) await runCommand(["ca", "init", "--data-dir", dataDir]);
  await runCommand(["ca", "issue", "localhost", address, "--data-dir", dataDir]);
}

function isGoodForToday(file: string): boolean {
  if (!existsSync(file)) return false;
  const tomorrow = Date.now() + 24 * 60 * 60 * 1000;
  return new X509Certificate(readFileSync(file)).validToDate.getTime() > tomorrow;
}

/** Starts servers one after another, because the first creates what all of them share. */
async function startServers({ replicas, serverArgs }: GatewayOptions): Promise<GatewayServer[]> {
  const servers: GatewayServer[] = [];
  while (servers.length < replicas) servers.push(await startGatewayServer(serverArgs));
  return servers;
}

function stopOnSignal(edge: Edge, servers: readonly GatewayServer[]): void {
  let stoppedAt: number | undefined;
  const stop = async (exitCode: number): Promise<never> => {
    stoppedAt = Date.now();
    if (exitCode === 0) await edge.drain();
    await edge.stop();
    const codes = await Promise.all(servers.map((server) => server.stop()));
    process.exit(codes.every((code) => code === 0) ? exitCode : 1);
  };
  const onSignal = (): void => {
    if (stoppedAt === undefined) void stop(0);
    // Its children end with it. One Ctrl-C arrives twice, from the terminal and from npm.
    else if (Date.now() - stoppedAt > 1000) process.exit(1);
  };
  for (const signal of signals) process.on(signal, onSignal);
  for (const [name, { exit }] of [
    ["envoy", edge] as const,
    ...servers.map((one) => ["a server", one] as const),
  ]) {
    void exit.then((code) => {
      if (stoppedAt !== undefined) return;
      process.stderr.write(`gateway: ${name} ended with ${code}; the other processes are stopped\n`);
      void stop(1);
    });
  }
}

function describeStart({ url, adminUrl }: Edge, { tlsDirectory, auth }: GatewayOptions): string {
  return `
${describeFirstSteps({ url, auth, caFile: relative("", join(tlsDirectory, "ca.crt")) })}

Envoy's admin interface is on ${adminUrl}
Quantum-Safe Playground is ready on ${url}
`;
}

try {
  await main();
} catch (error) {
  const isExplained = [CannotStart, EnvoyMissing, ServerEnded].some((kind) => error instanceof kind);
  process.stderr.write(
    `gateway: ${error instanceof Error ? (isExplained ? error.message : error.stack) : error}\n`,
  );
  process.exit(isExplained ? refusedToStart : 1);
}
