/** Composition: opens the store, and creates the services and their server. */
import type { Logger } from "pino";
import type { Config } from "./config.ts";
import { consolePages } from "./console/mount.ts";
import { createCryptoProvider } from "./crypto/create-provider.ts";
import type { CryptoProvider } from "./crypto/provider.ts";
import { queueProvider } from "./crypto/queued-provider.ts";
import { systemCaller, WorkQueue } from "./crypto/work-queue.ts";
import { openIdentity } from "./identity/open-identity.ts";
import { createPasswordLane } from "./identity/password-lane.ts";
import { openStore } from "./open-store.ts";
import { openApiPages } from "./openapi/pages.ts";
import type { Example } from "./protocol/example.ts";
import { protoPages } from "./protos/pages.ts";
import { currentCaller } from "./server/interceptors/caller.ts";
import { createMetrics, type Metrics } from "./server/metrics.ts";
import type { Page } from "./server/options.ts";
import { createServer, type Server } from "./server/server.ts";
import { explainFailure } from "./services/explain-failure.ts";
import { type ServicePackage, servicePackages } from "./services/registry.ts";
import { choosePackages } from "./settings/choose-packages.ts";
import { countCryptoThreads } from "./settings/crypto-settings.ts";
import { serverSettings } from "./settings/server-settings.ts";
import { quotaSettings, storeSettings } from "./settings/store-settings.ts";

/** A server with its open resources. */
export interface App {
  readonly server: Server;
  /** The libraries that compute: see `CryptoProvider.version`. */
  readonly cryptoVersion: string;
  /** Stops the server, then closes the other resources. */
  close(): Promise<void>;
}

/** How tests vary the app. */
export interface AppOptions {
  /** The packages to choose from. */
  readonly packages?: readonly ServicePackage[];
}

/**
 * Creates a server from settings.
 *
 * @throws ConfigError, StorageError, CryptoError with a sentence for the operator.
 */
export async function createApp(
  config: Config,
  logger: Logger,
  { packages = servicePackages }: AppOptions = {},
): Promise<App> {
  const chosen = choosePackages(packages, config.services);
  const now = (): Date => new Date();
  const metrics = createMetrics();
  const { provider, passwords } = await openCrypto(config, metrics, logger);
  const opening = openStore({
    ...storeSettings(config),
    provider: provider.system,
    onCommit: metrics.storeCommitted,
    quotas: quotaSettings(config),
  });
  const store = await opening.catch(async (error: unknown) => {
    await provider.close();
    throw error;
  });
  const { maxFailedLogins } = config;
  const identity = await openIdentity({
    provider,
    store,
    now,
    mode: config.auth,
    passwords,
    maxFailedLogins,
  });
  const challengeLimits = {
    perDevice: config.maxChallengesPerDevice,
    perClient: config.maxChallengesPerClient,
  };
  const deps = { ...identity, provider, store, challengeLimits, now };
  const loaded = await Promise.all(chosen.map(({ load }) => load()));
  const modules = await Promise.all(loaded.map(({ openServices }) => openServices(deps)));
  const examples = loaded.flatMap((module) => module.examples);
  const server = await createServer({
    ...serverSettings(config),
    services: modules.flatMap(({ services }) => services),
    logger,
    access: { mode: config.auth, authenticate: identity.authenticate },
    explainFailure,
    metrics,
    // The server describes itself with OpenAPI, whose clients expect that the path decides.
    routingOrder: "path",
    pages: createPages(config, examples),
  });
  return {
    server,
    cryptoVersion: provider.version,
    async close() {
      await server.close();
      for (const { close } of modules) await close?.();
      identity.close();
      await store.close();
      await provider.close();
    },
  };
}

/** Opens the cryptographic provider, behind queues that serve callers in turn. */
async function openCrypto(config: Config, metrics: Metrics, logger: Logger) {
  const passwords = createPasswordLane({
    maxChecks: config.maxPasswordChecks,
    maxWaitMs: config.maxBacklogMs,
  });
  const queue = new WorkQueue({
    threads: countCryptoThreads(config),
    maxWaitMs: config.maxQueueMs,
    maxBacklogMs: config.maxBacklogMs,
    busyElsewhere: () => passwords.lane.handed,
  });
  metrics.watchQueue({ queue, passwords: passwords.lane });
  const onFallback = (reason: string) => logger.warn(reason);
  const computing = await createCryptoProvider(config.cryptoProvider, { onFallback });
  metrics.nameProvider(computing);
  // Work outside of any call is the server's own.
  const provider: CryptoProvider = queueProvider(computing, queue, () => currentCaller() ?? systemCaller);
  return { provider, passwords };
}

/** The pages of the server. */
function createPages({ auth }: Config, examples: readonly Example[]): Page[] {
  return [openApiPages({ auth, examples }), protoPages, consolePages({ auth })];
}
