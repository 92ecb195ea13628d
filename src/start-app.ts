import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import { type AppOptions, createApp } from "./app.ts";
import { type Config, ConfigError } from "./config.ts";
import { TlsError } from "./server/tls.ts";
import type { ServicePackage } from "./services/registry.ts";

export interface StartOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** The service packages to choose from. */
  readonly packages: readonly ServicePackage[];
  readonly startTracing: AppOptions["startTracing"];
  /** Runs once the store is open, before the server listens. */
  readonly onOpen: () => void;
}

/** A listening server. */
export interface StartedServer {
  readonly address: AddressInfo;
  readonly cryptoVersion: string;
  /**
   * Lets running calls finish, then stops.
   *
   * @param maxDrainMs milliseconds that they have; defaults to the settings
   */
  close(maxDrainMs?: number): Promise<void>;
  /** Counts an uncaught error. */
  countUncaughtError(): void;
  /** Calls back if the server stops by itself because its store has become unusable. */
  onFailure(listener: () => void): void;
}

/**
 * Starts the server.
 *
 * @throws errors of `createApp`, and a system error if it cannot listen
 */
export async function startApp({
  config,
  logger,
  packages,
  startTracing,
  onOpen,
}: StartOptions): Promise<StartedServer> {
  const failed = Promise.withResolvers<Error>();
  const app = await createApp(config, logger, { packages, startTracing, onFailure: failed.resolve }).catch(
    (error: unknown) => {
      throw toConfigError(error);
    },
  );
  onOpen();
  const { port, host, reusePort } = config;
  const address = await app.server.listen(port, host, { reusePort }).catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  let closing: Promise<void> | undefined;
  const close = (maxDrainMs?: number): Promise<void> => {
    closing ??= app.close(maxDrainMs);
    return closing;
  };
  return {
    address,
    cryptoVersion: app.cryptoVersion,
    close,
    countUncaughtError: app.metrics.uncaughtError,
    onFailure: (listener) =>
      void failed.promise.then(async (error) => {
        logger.fatal({ err: error }, "the store has become unusable; the server stops");
        await close().catch((err: unknown) => logger.error({ err }, "could not stop cleanly"));
        listener();
      }),
  };
}

/** Converts an error about a TLS file to one about its setting; returns any other error unchanged. */
function toConfigError(error: unknown): unknown {
  return error instanceof TlsError ? new ConfigError(error.message) : error;
}
