/** `qsp serve`: starts the server, and stops it on a signal. */

import { existsSync } from "node:fs";
import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import { findUnknownVariables } from "./cli/command-line/unknown-variables.ts";
import { CliError, exitCodes } from "./cli/exit-codes.ts";
import { writesToJournal } from "./cli/operator/journal.ts";
import { removeRemainsOfKey } from "./cli/operator/remains.ts";
import { findSharedDirectories } from "./cli/operator/shared-directories.ts";
import { passwordWarning, type StoreVerbInput, showsPassword, toVerb } from "./cli/operator/store-verb.ts";
import type { Verb } from "./cli/verb.ts";
import type { AddedSettings } from "./config/setting.ts";
import { type Config, ConfigError, describeSettings, listSettings, nameVariable } from "./config.ts";
import { collectSettings, type Extension } from "./extension.ts";
import { describeFirstSteps } from "./first-calls.ts";
import type { StartTracing } from "./open-observability.ts";
import { returnMemoryWhenQuiet } from "./return-memory.ts";
import { findPort } from "./server/find-port.ts";
import { openLog } from "./server/log.ts";
import { readTlsOptions, TlsError } from "./server/tls.ts";
import { serverSettings } from "./settings/server-settings.ts";
import type { StartedServer } from "./start-app.ts";
import { readErrorCode } from "./system-error.ts";
import { handleUncaughtErrors } from "./uncaught-errors.ts";

/** Creates the verb that starts the server. It returns when the server has stopped. */
export async function createServeVerb(extensions: readonly Extension[]): Promise<Verb> {
  const settings = await collectSettings(extensions);
  const startTracing = extensions.find((one) => one.startTracing !== undefined)?.startTracing;
  const verb = {
    line: "serve",
    meaning:
      "Starts the server. The first signal lets running calls finish. The second ends the server immediately.",
    example: "qsp serve --port 9000",
    hasLog: true,
    run: async (input: StoreVerbInput) => ({ exitCode: await serve(input, { settings, startTracing }) }),
  };
  return {
    ...toVerb(verb, settings),
    settingsHelp: `Settings, as flags or as variables:\n${describeSettings(settings)}`,
  };
}

/** What extensions add to a server besides packages. */
interface Additions {
  readonly settings: readonly AddedSettings[];
  readonly startTracing: StartTracing | undefined;
}

async function serve(
  { config, location, masterKey, loadPackages }: StoreVerbInput,
  { settings, startTracing }: Additions,
): Promise<number> {
  const logger = openLog({ level: config.logLevel });
  for (const sentence of removeRemainsOfKey(masterKey)) logger.warn(sentence);
  const onOpen = watchFiles({ location, masterKey });
  // This loads most of the code. The other verbs need little of it.
  const { startApp } = await import("./start-app.ts");
  await requireFreePort(config);
  requireTlsFiles(config);
  const packages = await loadPackages();
  const running = await startApp({ config, logger, packages, startTracing, onOpen }).catch(
    (error: unknown) => {
      // The next start finds the files and does not mention them.
      onOpen();
      throw explainListenError(error, config);
    },
  );
  const stopped = waitForEnd(running, logger);
  if (showsPassword(config)) logger.warn(passwordWarning);
  const variables = listSettings(settings).map(({ name }) => nameVariable(name));
  for (const sentence of findUnknownVariables(process.env, variables)) logger.warn(sentence);
  for (const sentence of findSharedDirectories({ masterKey })) logger.warn(sentence);
  const url = formatUrl(running.address, config);
  process.stdout.write(describeStart(url, config, running.cryptoVersion));
  returnMemoryWhenQuiet();
  return stopped;
}

/** Checks the port before the store exists: a failed start should leave neither a store nor a master key. */
async function requireFreePort(config: Config): Promise<void> {
  // The check would take connections away from the servers that share the port.
  if (config.reusePort) return;
  try {
    await findPort(config.port, config.host);
  } catch (error) {
    // Other errors are invalid settings, and the start reports earlier settings first.
    if (readErrorCode(error) === "EADDRINUSE") throw explainListenError(error, config);
  }
}

/** Checks the TLS files before the store exists, like the port. */
function requireTlsFiles(config: Config): void {
  const { tls } = serverSettings(config);
  try {
    if (tls.length > 0) readTlsOptions(tls);
  } catch (error) {
    throw error instanceof TlsError ? new ConfigError(error.message) : error;
  }
}

function explainListenError(error: unknown, { host, port }: Config): unknown {
  const code = readErrorCode(error);
  if (code === "EADDRINUSE")
    // Not the usage exit code: the port may be released shortly.
    return new CliError(
      exitCodes.unreachable,
      `port ${port} of ${host} is in use; choose another port with --port`,
    );
  if (code === "EACCES")
    return new ConfigError(`port ${port} is not allowed for this user; choose one above 1023 with --port`);
  if (code === "EADDRNOTAVAIL")
    return new ConfigError(
      `${host} is not an address of this machine; use one, such as 127.0.0.1, with --host`,
    );
  if (code === "ENOTFOUND")
    return new ConfigError(
      `the host name ${host} cannot be resolved; check --host, or use an address such as 127.0.0.1`,
    );
  return error;
}

/**
 * Milliseconds that calls have to finish after an uncaught error, and that the server has to close its store.
 */
const faultDrainMs = 3000;
const faultCloseMs = 5000;

/**
 * Waits for a signal or an error that ends the server, and stops it.
 *
 * @returns the exit code
 */
function waitForEnd(running: StartedServer, logger: Logger): Promise<number> {
  return new Promise((resolve) => {
    let isStopping = false;
    // The same exit code as for an unusable store at startup: a service manager then restarts the server.
    running.onFailure(() => resolve(exitCodes.unreachable));
    handleUncaughtErrors({
      logger,
      count: running.countUncaughtError,
      end: () => {
        isStopping = true;
        const end = (): void => resolve(exitCodes.fault);
        // The error may have left anything in a state that cannot be closed.
        setTimeout(end, faultDrainMs + faultCloseMs);
        running.close(faultDrainMs).then(end, end);
      },
    });
    const onSignal = (signal: NodeJS.Signals): void => {
      if (isStopping) process.exit(1);
      isStopping = true;
      logger.info({ signal }, "stopping; a second signal ends the server immediately");
      running.close().then(
        () => resolve(exitCodes.done),
        (error: unknown) => {
          logger.fatal({ err: error }, "could not stop cleanly");
          resolve(1);
        },
      );
    };
    for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal).on(signal, onSignal);
  });
}

function formatUrl({ address, family, port }: AddressInfo, { tlsCert }: Config): string {
  return `${tlsCert === "" ? "http" : "https"}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

/** Returns a function that reports, once, which files were created since. */
function watchFiles({ location, masterKey }: Pick<StoreVerbInput, "location" | "masterKey">): () => void {
  const missing = (path: string | undefined): string | undefined =>
    path !== undefined && !existsSync(path) ? path : undefined;
  let store = missing(location.kind === "sqlite" ? location.path : undefined);
  let key = missing(masterKey.kind === "file" ? masterKey.path : undefined);
  return () => {
    const isMade = (path: string | undefined): boolean => path !== undefined && existsSync(path);
    process.stdout.write(describeNew(isMade(store) ? store : undefined, isMade(key) ? key : undefined));
    [store, key] = [undefined, undefined];
  };
}

/** Describes what a first start created, and what the operator should do with it. */
function describeNew(store: string | undefined, key: string | undefined): string {
  const made: string[] = [];
  if (store !== undefined) made.push(`Created a new store, ${store}.`);
  if (key !== undefined)
    made.push(`Created a new master key, ${key}: store a copy of it apart from the store.`);
  return made.length === 0 ? "" : `\n${made.join("\n")}\n`;
}

/**
 * The startup message. Its last line says that the server is ready. The advice is for people at a terminal.
 */
function describeStart(url: string, { auth }: Config, cryptoVersion: string): string {
  const advice = writesToJournal(process.env)
    ? ""
    : `\n${describeFirstSteps({ url, auth, caFile: "CA.crt" })}\n\n`;
  return `${advice}Cryptography: ${cryptoVersion}
Quantum-Safe Playground is ready on ${url}
`;
}
