/** The command line: starts the server, and stops it. The only file that ends the process, beside src/cli. */

import type { AddressInfo } from "node:net";
import os from "node:os";
import { pino } from "pino";
import { isClientLine } from "./cli/groups.ts";
import { type Config, ConfigError, describeSettings, readConfig } from "./config.ts";
import { firstCalls } from "./first-calls.ts";

// Signing runs in libuv's pool. As many threads as cores give the most signatures a second; more only queue
// in the kernel. libuv reads this when the pool is first used, so it stands before everything that is loaded.
process.env.UV_THREADPOOL_SIZE ??= String(os.availableParallelism());
// A client needs nothing of the server, and a person waits for it.
if (isClientLine(process.argv.slice(2))) {
  const { runClient } = await import("./cli/run.ts");
  process.exit(await runClient(process.argv.slice(2)));
}
const { createApp, storeSettings } = await import("./app.ts");
const { describeCommands, readCommandLine } = await import("./commands/commands.ts");

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
  if (line) {
    const { command, operands } = line;
    process.exitCode = await command.run({ operands, config, ...storeSettings(config) });
    return;
  }
  const logger = pino({ level: config.logLevel }, pino.destination({ dest: 2, sync: true }));
  const app = await createApp(config, logger);
  for (const { httpMethod, template, origin } of app.server.transcoder.routes) {
    logger.debug({ httpMethod, path: template.text, rpc: origin }, "route");
  }
  const address = await app.server.listen(config.port, config.host).catch(async (error: unknown) => {
    await app.close();
    throw explainListenError(error, config);
  });
  stopOnSignal(app.close, logger);
  process.stdout.write(describeStart(urlOf(address, config), config));
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

function urlOf({ address, family, port }: AddressInfo, { tlsCert }: Config): string {
  return `${tlsCert === "" ? "http" : "https"}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
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
