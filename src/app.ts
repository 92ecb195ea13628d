/** Composes the app: opens the store and creates the services and their server. */
import type { Logger } from "pino";
import type { Config } from "./config.ts";
import { consolePages } from "./console-pages/mount.ts";
import { openIdentity } from "./identity/open-identity.ts";
import { openCrypto } from "./open-crypto.ts";
import { openObservability, type StartTracing } from "./open-observability.ts";
import { collectTables, openStore } from "./open-store.ts";
import { openApiPages } from "./openapi/pages.ts";
import { protoPages } from "./proto-archive/pages.ts";
import { requireAuthChosen } from "./require-auth-chosen.ts";
import { currentCall } from "./server/interceptors/caller.ts";
import type { Metrics } from "./server/metrics.ts";
import { createServer, type Server } from "./server/server.ts";
import { explanations } from "./services/explain-failure.ts";
import { createDeviceOwners } from "./services/iot/device-owners.ts";
import { createKeyDomain } from "./services/kms/domain.ts";
import {
  collectProfiles,
  listScopes,
  loadLogVerification,
  type ServicePackage,
  servicePackages,
} from "./services/registry.ts";
import { choosePackages } from "./settings/choose-packages.ts";
import { identitySettings } from "./settings/identity-settings.ts";
import { requireReusablePort } from "./settings/reuse-port.ts";
import { serverSettings } from "./settings/server-settings.ts";
import { serviceSettings } from "./settings/service-settings.ts";
import { quotaSettings, storeSettings } from "./settings/store-settings.ts";
import { watchStore } from "./watch-store.ts";

/** A server with its open resources. */
export interface App {
  readonly server: Server;
  /** The crypto libraries in use: see `CryptoProvider.version`. */
  readonly cryptoVersion: string;
  readonly metrics: Pick<Metrics, "uncaughtError">;
  /**
   * Stops the server, then closes the other resources.
   *
   * @param maxDrainMs see `Server.close`
   */
  close(maxDrainMs?: number): Promise<void>;
}

export interface AppOptions {
  /** The packages to choose from. */
  readonly packages?: readonly ServicePackage[];
  /** Notified if the app cannot continue because its store has become unusable. */
  readonly onFailure?: (error: Error) => void;
  /** Traces the calls if the settings enable it. */
  readonly startTracing?: StartTracing | undefined;
}

/**
 * Creates a server from settings.
 *
 * @throws ConfigError, StorageError, CryptoError with a sentence for the operator
 */
export async function createApp(
  config: Config,
  logger: Logger,
  { packages = servicePackages, onFailure, startTracing }: AppOptions = {},
): Promise<App> {
  const chosen = choosePackages(packages, config.services);
  requireReusablePort(config, chosen);
  const now = (): Date => new Date();
  // Closed in reverse order, also if a later step of the start fails.
  await using opened = new AsyncDisposableStack();
  const watching = await openObservability(config, logger, startTracing);
  opened.defer(() => watching.close());
  const { metrics, tracing } = watching;
  const { provider, passwords } = await openCrypto(config, { ...watching, logger, call: currentCall });
  opened.defer(() => provider.close());
  const store = await openStore({
    ...storeSettings(config),
    // The tables of all packages: another start may serve different ones from the same store.
    tables: await collectTables(packages),
    provider: provider.system,
    ...watching.store,
    callerOf: currentCall.callerOf,
    onLost: onFailure,
    quotas: quotaSettings(config),
  });
  opened.defer(() => store.close());
  await requireAuthChosen(store, config);
  for (const risk of store.risks) logger.warn(risk);
  const identity = await openIdentity({
    ...identitySettings(config),
    provider,
    store,
    now,
    passwords,
    findDeviceOwner: createDeviceOwners(store),
    logger,
  });
  opened.defer(() => identity.close());
  const keyDomain = createKeyDomain({ ...identity, provider, store, now });
  opened.defer(() => keyDomain.close());
  const { verifyAudit } = await loadLogVerification(packages);
  const shared = { ...identity, provider, store, keyDomain, metrics, now };
  const deps = { ...shared, ...serviceSettings(config), scopes: listScopes(chosen), verifyAudit };
  const loaded = await Promise.all(chosen.map(({ load }) => load()));
  const modules = await Promise.all(
    loaded.map(async ({ openServices }) => {
      const module = await openServices(deps);
      opened.defer(() => module.close?.());
      return module;
    }),
  );
  const server = await createServer({
    ...serverSettings(config),
    services: modules.flatMap(({ services }) => services),
    profiles: collectProfiles(chosen),
    logger,
    access: { mode: config.auth, authenticate: identity.authenticate },
    ...explanations,
    metrics,
    tracing,
    // The server describes itself with OpenAPI.
    pathConvention: "openapi",
    pages: [
      openApiPages({ auth: config.auth, examples: loaded.flatMap(({ examples }) => examples) }),
      protoPages,
      consolePages({ auth: config.auth, publicUrl: config.issuerUrl }),
    ],
  });
  for (const { httpMethod, template, origin } of server.transcoder.routes)
    logger.debug({ httpMethod, path: template.text, rpc: origin }, "route");
  const stopWatching = watchStore(store, { server, metrics, logger, packages: chosen });
  const rest = opened.move();
  return {
    server,
    cryptoVersion: provider.version,
    metrics,
    async close(maxDrainMs) {
      stopWatching();
      await server.close(maxDrainMs);
      await rest.disposeAsync();
    },
  };
}
