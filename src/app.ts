/** Where all parts meet: opens the store, makes the services, and a server that serves them. */
import { createServiceImplSpec, type ServiceImplSpec } from "@connectrpc/connect";
import type { Logger } from "pino";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { type Config, ConfigError } from "./config.ts";
import { createCryptoProvider } from "./crypto/create-provider.ts";
import type { CryptoProvider } from "./crypto/provider.ts";
import { callerOf } from "./server/interceptors/access.ts";
import { createServer, type Server } from "./server/server.ts";
import { authenticate } from "./services/pqc/check-token.ts";
import { type Issuer, openIssuer } from "./services/pqc/issuer.ts";
import { pqcService } from "./services/pqc/pqc-service.ts";
import { createIssuerStore } from "./services/pqc/store.ts";
import { tokenService } from "./services/pqc/token-service.ts";
import { type Database, openDatabase } from "./storage/database.ts";
import { loadMasterKey } from "./storage/master-key.ts";

/** A server with everything that it holds open. */
export interface App {
  readonly server: Server;
  /** Stops serving, then lets go of the rest. */
  close(): Promise<void>;
}

/** What services are made of. */
interface Parts {
  readonly provider: CryptoProvider;
  readonly issuer: Issuer;
}

/** The services of each package. A new service is one line here. */
const packages: Readonly<Record<string, (parts: Parts) => ServiceImplSpec[]>> = {
  pqc: ({ provider, issuer }) => [
    createServiceImplSpec<typeof PqcService>(PqcService, pqcService({ provider, issuer })),
    createServiceImplSpec<typeof TokenService>(TokenService, tokenService({ provider, issuer, callerOf })),
  ],
};

/**
 * Makes a server from settings.
 *
 * @throws ConfigError, StorageError, CryptoError with a sentence for the operator.
 */
export async function createApp(config: Config, logger: Logger): Promise<App> {
  const chosen = choosePackages(config.services);
  const masterKey = loadMasterKey(
    config.dataDir,
    config.masterKeyFile === "" ? undefined : config.masterKeyFile,
  );
  const database: Database = await openDatabase(config.dataDir);
  const provider = await createCryptoProvider(config.cryptoProvider);
  const issuer = await openIssuer({
    provider,
    store: createIssuerStore(database, masterKey),
    now: () => new Date(),
  });
  const server = await createServer({
    services: chosen.flatMap((make) => make({ provider, issuer })),
    logger,
    access: { mode: config.auth, authenticate: (authorization) => authenticate(issuer, authorization) },
    limits: {
      maxMetadataBytes: config.maxMetadataBytes,
      maxMessageBytes: config.maxMessageBytes,
      maxCallMs: config.maxCallMs,
      maxDrainMs: config.maxDrainMs,
    },
  });
  return {
    server,
    async close() {
      await server.close();
      await provider.close();
      await database.destroy();
    },
  };
}

function choosePackages(names: readonly string[]): ((parts: Parts) => ServiceImplSpec[])[] {
  const known = Object.keys(packages);
  return (names.includes("all") ? known : names).map((name) => {
    const make = Object.hasOwn(packages, name) ? packages[name] : undefined;
    if (make === undefined)
      throw new ConfigError(`--services: "${name}" is not known; known are all, ${known.join(", ")}`);
    return make;
  });
}
