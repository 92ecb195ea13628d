/**
 * Runs servers behind Envoy: `npm run gateway -- [--port 8443] [--replicas 1] [--keep-going] [-- server settings]`.
 *
 * Creates a private CA and a certificate if none exist or the certificate expires soon. A signal first drains Envoy
 * and then stops the servers; a second signal ends everything immediately.
 */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, relative } from "node:path";
import { describeFirstSteps } from "../src/first-calls.ts";
import { type Edge, EnvoyMissing, findEnvoy, startEdge } from "./edge.ts";
import { CannotStart, type GatewayOptions, gatewayHelp, readGatewayOptions } from "./gateway-options.ts";
import { type GatewayServer, runCommand, ServerEnded, startGatewayServer } from "./servers.ts";

/** Exit code for an error that the operator can fix, as in src/main.ts. */
const refusedToStart = 2;

/** Envoy listens on loopback only, because anyone may call while the servers run with --auth open. */
const address = "127.0.0.1";

/** The signals that stop the gateway: from Ctrl-C, a service manager, or a closed terminal. */
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

async function main(): Promise<void> {
  const options = readGatewayOptions(process.argv.slice(2), process.env);
  if (options.isHelp) {
    process.stdout.write(gatewayHelp);
    return;
  }
  // Without a handler, a signal would end only this process and leave its children running.
  const stopEarly = (): never => process.exit(1);
  for (const signal of signals) process.on(signal, stopEarly);
  if (findEnvoy() === undefined) throw new EnvoyMissing();
  await requireFreePort(options.port);
  const certificate = await makeCertificate(options);
  const servers = await startServers(options);
  const edge = await startEdge({
    backends: servers.map(({ authority }) => authority),
    tlsDirectory: options.tlsDirectory,
    address,
    port: options.port,
  });
  for (const signal of signals) process.off(signal, stopEarly);
  stopOnSignal(edge, servers, options);
  process.stdout.write(
    describeStart(edge, options, [...certificate, ...servers.flatMap(({ created }) => created)]),
  );
}

/** Refuses a port in use: two Envoys can share one port and its calls, which would be a mistake here. */
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

/**
 * @returns a sentence about what it created, if anything; the commands themselves would suggest the port in
 *   envoy.yaml
 */
async function makeCertificate({ tlsDirectory }: GatewayOptions): Promise<string[]> {
  if (isGoodForToday(join(tlsDirectory, "gateway.crt"))) return [];
  const dataDir = join(tlsDirectory, "..");
  const needsAuthority = !existsSync(join(tlsDirectory, "ca.crt"));
  if (needsAuthority) await runCommand(["ca", "init", "--data-dir", dataDir]);
  await runCommand(["ca", "issue", "localhost", address, "--data-dir", dataDir]);
  const made = `a certificate for localhost and ${address} in ${relative("", tlsDirectory)}`;
  return [
    needsAuthority ? `Created a private CA and ${made}: clients must trust ca.crt.` : `Created ${made}.`,
  ];
}

function isGoodForToday(file: string): boolean {
  if (!existsSync(file)) return false;
  const tomorrow = Date.now() + 24 * 60 * 60 * 1000;
  return new X509Certificate(readFileSync(file)).validToDate.getTime() > tomorrow;
}

/** Starts servers one after another, because the first one creates what all of them share. */
async function startServers({ replicas, serverArgs }: GatewayOptions): Promise<GatewayServer[]> {
  const servers: GatewayServer[] = [];
  while (servers.length < replicas) servers.push(await startGatewayServer(serverArgs));
  return servers;
}

function stopOnSignal(edge: Edge, servers: readonly GatewayServer[], { keepGoing }: GatewayOptions): void {
  let running = servers.length;
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
    // Its children end with it. A single Ctrl-C arrives twice, from the terminal and from npm.
    else if (Date.now() - stoppedAt > 1000) process.exit(1);
  };
  for (const signal of signals) process.on(signal, onSignal);
  const stopAfter = (name: string, code: number | NodeJS.Signals): void => {
    if (stoppedAt !== undefined) return;
    process.stderr.write(`gateway: ${name} ended with ${code}; the other processes are stopped\n`);
    void stop(1);
  };
  void edge.exit.then((code) => stopAfter("envoy", code));
  for (const { exit, authority } of servers) {
    void exit.then((code) => {
      running -= 1;
      if (stoppedAt !== undefined) return;
      // Envoy notices the closed connections and sends calls to the other servers.
      if (keepGoing && running > 0)
        process.stderr.write(
          `gateway: the server on ${authority} ended with ${code}; ${running} of ${servers.length} continue\n`,
        );
      else stopAfter("a server", code);
    });
  }
}

function describeStart(
  { url, adminUrl }: Edge,
  { tlsDirectory, auth }: GatewayOptions,
  created: readonly string[],
): string {
  return `
${created.map((line) => `${line}\n`).join("")}${created.length === 0 ? "" : "\n"}${describeFirstSteps({ url, auth, caFile: relative("", join(tlsDirectory, "ca.crt")) })}

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
