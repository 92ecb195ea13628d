/** Runs the plugin until a signal stops it. */
import type { Logger } from "pino";
import { Registry } from "prom-client";
import type { ParsedOptions } from "../../src/cli/command-line/options.ts";
import type { ApiClient } from "../../src/cli/connection/api-client.ts";
import {
  createLoginTokens,
  openStoredTokens,
  readPassword,
  type TokenSource,
} from "../../src/cli/connection/credentials.ts";
import { exitCodes } from "../../src/cli/exit-codes.ts";
import type { VerbInput } from "../../src/cli/verb.ts";
import { createCallMetrics } from "../../src/server/call-metrics.ts";
import { openLog } from "../../src/server/log.ts";
import { startGrpcServer } from "./grpc-server.ts";
import { createKeyService } from "./key-service.ts";
import { startMetricsServer } from "./metrics-server.ts";
import { createObserver } from "./observe.ts";
import { type PluginOptions, readPluginOptions } from "./plugin-options.ts";
import { createService, type Health } from "./service.ts";
import { prepareSocket } from "./socket.ts";

/** Maximum concurrent calls over all connections. */
const maxCalls = 256;
/** Milliseconds that an API server call may take in addition to its key service calls. */
const spareMs = 5000;
/** Upper bounds of the duration buckets, in seconds. */
const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * Runs the plugin until a signal.
 *
 * @returns the exit code
 */
export async function runPlugin({ options, output, server }: VerbInput): Promise<number> {
  const settings = readPluginOptions(options);
  // Shared secrets travel over this connection, with or without a token.
  server.requirePrivacy();
  const tokens = openTokens(settings, options, server);
  const logger = openLog({ level: settings.logLevel, base: null });
  const registry = new Registry();
  const { maxServerMs, place, metricsPort } = settings;
  const service = createService({
    keys: createKeyService({ server, tokens, keyName: settings.keyName }),
    maxServerMs,
    onHealth: createHealthLog(logger),
  });
  await prepareSocket(place.path);
  const metrics = metricsPort === undefined ? undefined : await startMetricsServer(registry, metricsPort);
  const observer = createObserver({
    logger,
    metrics: createCallMetrics(registry, durationBuckets),
    maxCalls,
  });
  // Decrypt makes up to three calls: two to find the owner of the version, and one for the secret.
  const maxCallMs = 3 * maxServerMs + spareMs;
  const plugin = await startGrpcServer({
    service,
    interceptors: [observer],
    place,
    maxCallMs,
    maxDrainMs: maxServerMs + spareMs,
  }).catch((error: unknown) => {
    metrics?.close();
    throw error;
  });
  const signal = waitForSignal();
  const metricsUrl = metrics && `http://127.0.0.1:${metrics.port}/metrics`;
  output.report(
    {
      socket: place.path,
      key: settings.keyName,
      url: server.url,
      ...(metricsUrl && { metrics: metricsUrl }),
    },
    `${metricsUrl ? `Metrics are at ${metricsUrl}\n` : ""}qsp k8s-kms is ready on unix://${place.path}`,
  );
  logger.info({ signal: await signal }, "stopping; a second signal ends the plugin immediately");
  await plugin.close();
  metrics?.close();
  return exitCodes.done;
}

function openTokens({ login }: PluginOptions, options: ParsedOptions, server: ApiClient): TokenSource {
  if (login === undefined) return openStoredTokens(options, server);
  readPassword(login.file);
  return createLoginTokens({ server, username: login.name, passwordFile: login.file, now: Date.now });
}

/** Logs the health that Status reports whenever it changes. */
function createHealthLog(logger: Logger): (health: Health) => void {
  let last: Health | undefined;
  return (health) => {
    if (last?.healthz === health.healthz && last.keyId === health.keyId) return;
    last = health;
    logger[health.healthz === "ok" ? "info" : "error"](health, "the health changed");
  };
}

/** Waits for a signal. A second one ends the process. */
function waitForSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isStopping = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (isStopping) process.exit(exitCodes.interrupted);
      isStopping = true;
      resolve(signal);
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}
