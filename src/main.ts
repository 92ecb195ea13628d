/** The command line: starts the server, and stops it. The only file that ends the process, beside src/cli. */

import { existsSync } from "node:fs";
import type { AddressInfo } from "node:net";
import os from "node:os";
import { pino } from "pino";
import { isClientLine } from "./cli/groups.ts";
import { type Config, ConfigError, describeSettings, readConfig } from "./config.ts";
import { firstCalls } from "./first-calls.ts";

// Signing runs in libuv's pool. As many threads as cores give the most signatures a second; more only queue
// in the kernel. Two more check passwords (--max-password-checks), which would each hold a core's thread up. libuv reads
// this when the pool is first used, so it stands before everything that is loaded.
process.env.UV_THREADPOOL_SIZE ??= String(os.availableParallelism() + 2);
// A client needs nothing of the server, and a person waits for it.
if (isClientLine(process.argv.slice(2))) {
  const { runClient } = await import("./cli/run.ts");
  process.exit(await runClient(process.argv.slice(2)));
}
const { describeCommands, readCommandLine } = await import("./cli/operator/commands.ts");
const { explainStoreFailure } = await import("./cli/operator/explain-failure.ts");
const { describeLocation } = await import("./database/database.ts");
const { storeSettings } = await import("./settings/store-settings.ts");

type StoreSettings = ReturnType<typeof storeSettings>;

/** Exit code for what the operator can mend: a bad setting, a busy port, a store that can not be opened. */
const refusedToStart = 2;

const help = `Usage: npm start -- [settings]
       npx qsp <command> [settings]
       npx qsp help                   lists the verbs of the client

Serves post-quantum cryptography over gRPC, gRPC-Web, Connect and REST, on one port.

Commands for the operator of a store:
${describeCommands()}

Settings, as flags or as variables:
${describeSettings()}
  --help                           Prints this.
`;

async function main(): Promise<void> {
  const args = process.argv.slice(2);
  if (args.includes("--help")) {
    process.stdout.write(help);
    return;
  }
  const line = readCommandLine(args);
  const config = readConfig(line?.flags ?? args, process.env);
  const store = storeSettings(config);
  try {
    if (!line) return await serve(config, store);
    if (showsPassword(config)) process.stderr.write(`qsp: warning: ${passwordWarning}\n`);
    process.exitCode = await line.command.run({ operands: line.operands, config, ...store });
  } catch (error) {
    throw explainStoreFailure(error, describeLocation(store.location));
  }
}

async function serve(config: Config, { location, masterKey }: StoreSettings): Promise<void> {
  const logger = pino({ level: config.logLevel }, pino.destination({ dest: 2, sync: true }));
  const newStore = location.kind === "sqlite" && !existsSync(location.path) ? location.path : undefined;
  const newKey = masterKey.kind === "file" && !existsSync(masterKey.path) ? masterKey.path : undefined;
  // Most of what there is to load; a command needs little of it.
  const { createApp } = await import("./app.ts");
  const app = await createApp(config, logger);
  for (const { httpMethod, template, origin } of app.server.transcoder.routes) {
    logger.debug({ httpMethod, path: template.text, rpc: origin }, "route");
  }
  // Also if the start goes no further: the next one finds them, and says nothing of them.
  process.stdout.write(describeNew(newStore, newKey));
  const address = await app.server.listen(config.port, config.host).catch(async (error: unknown) => {
    await app.close();
    throw explainListenError(error, config);
  });
  stopOnSignal(app.close, logger);
  if (showsPassword(config)) logger.warn(passwordWarning);
  process.stdout.write(describeStart(formatUrl(address, config), config));
}

function explainListenError(error: unknown, { host, port }: Config): unknown {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EADDRINUSE")
    return new ConfigError(`port ${port} of ${host} is in use; choose another with --port`);
  if (code === "EACCES")
    return new ConfigError(`port ${port} is not ours to use; choose one above 1023 with --port`);
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
    return new ConfigError(`${host} is no address of this machine`);
  return error;
}

/** The first signal lets running calls finish, the second ends at once. */
function stopOnSignal(close: () => Promise<void>, logger: pino.Logger): void {
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) process.exit(1);
    isStopping = true;
    logger.info({ signal }, "stopping; a second signal ends at once");
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.fatal({ err: error }, "could not stop in order");
        process.exit(1);
      },
    );
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
}

function formatUrl({ address, family, port }: AddressInfo, { tlsCert }: Config): string {
  return `${tlsCert === "" ? "http" : "https"}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

/** What a first start made, and what there is to do about it. */
function describeNew(store: string | undefined, key: string | undefined): string {
  const made: string[] = [];
  if (store !== undefined) made.push(`Made a new store, ${store}.`);
  if (key !== undefined) made.push(`Made a new master key, ${key}: keep a copy of it apart from the store.`);
  return made.length === 0 ? "" : `\n${made.join("\n")}\n`;
}

const passwordWarning =
  "everybody on this machine can read the password in --database-url; give the URL in QSP_DATABASE_URL, or the password in PGPASSWORD or ~/.pgpass";

/** Tells whether the list of processes shows the password of the database. */
function showsPassword({ databaseUrl }: Config): boolean {
  if (!process.argv.some((arg) => databaseUrl !== "" && arg.endsWith(databaseUrl))) return false;
  const { password, searchParams } = new URL(databaseUrl);
  return password !== "" || searchParams.has("password");
}

/** What a newcomer sees; its last line says that the server is ready. */
function describeStart(url: string, { auth }: Config): string {
  return `
Try, in another terminal:

${firstCalls({ url, auth, caFile: "CA.crt" })}

Quantum-Safe Playground is ready on ${url}
`;
}

try {
  await main();
} catch (error) {
  const isExplained =
    error instanceof Error &&
    ["ConfigError", "StorageError", "CryptoError", "TlsError", "RecordDamaged"].includes(
      error.constructor.name,
    );
  process.stderr.write(
    `qsp: ${isExplained ? error.message : error instanceof Error ? error.stack : error}\n`,
  );
  process.exit(isExplained ? refusedToStart : 1);
}
