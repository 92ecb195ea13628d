/** Where all parts meet: opens the store, makes the services, and a server that serves them. */
import os from "node:os";
import {
  type ConnectError,
  createServiceImplSpec,
  type HandlerContext,
  type ServiceImplSpec,
} from "@connectrpc/connect";
import type { Logger } from "pino";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { type Config, ConfigError, listFiles } from "./config.ts";
import { consolePages } from "./console/mount.ts";
import { createCryptoProvider } from "./crypto/create-provider.ts";
import type { CryptoProvider } from "./crypto/provider.ts";
import { queueProvider } from "./crypto/queued-provider.ts";
import { CryptoBusy, systemCaller, WorkQueue } from "./crypto/work-queue.ts";
import { refuse, refuseForNow } from "./errors.ts";
import { openApiPages } from "./openapi/pages.ts";
import { protoPages } from "./protos/pages.ts";
import { clientOf, networkOf, networksOf } from "./server/client-address.ts";
import { callerKey, callerOf } from "./server/interceptors/access.ts";
import { currentCaller } from "./server/interceptors/caller.ts";
import { repeatableOf } from "./server/interceptors/idempotency.ts";
import { createMetrics } from "./server/metrics.ts";
import { createHostCheck } from "./server/request-head.ts";
import { createServer, type Server } from "./server/server.ts";
import type { TlsFiles } from "./server/tls.ts";
import { blockchainService } from "./services/blockchain/blockchain-service.ts";
import { createChainStore } from "./services/blockchain/store.ts";
import { dappService } from "./services/dapp/dapp-service.ts";
import { createDappStore } from "./services/dapp/store.ts";
import { defiService } from "./services/defi/defi-service.ts";
import { createDefiStore } from "./services/defi/store.ts";
import { iotService } from "./services/iot/iot-service.ts";
import { createIotStore } from "./services/iot/store.ts";
import { createKeyCache } from "./services/kms/key-cache.ts";
import { kmsService } from "./services/kms/kms-service.ts";
import { createKmsStore } from "./services/kms/store.ts";
import { nftService } from "./services/nft/nft-service.ts";
import { createNftStore } from "./services/nft/store.ts";
import { createAttempts } from "./services/pqc/attempts.ts";
import { authenticate, deviceUse, requireNotRevoked, revocationGroupOf } from "./services/pqc/check-token.ts";
import { type Issuer, openIssuer } from "./services/pqc/issuer.ts";
import { type LogIn, logInAnyone, logInUsers } from "./services/pqc/log-in.ts";
import { createPasswordLane } from "./services/pqc/password-lane.ts";
import { pqcService } from "./services/pqc/pqc-service.ts";
import { createIssuerStore } from "./services/pqc/store.ts";
import { tokenService } from "./services/pqc/token-service.ts";
import { createUserStore, type UserStore } from "./services/pqc/users.ts";
import { openGateway } from "./services/vpn/gateway.ts";
import { createVpnStore } from "./services/vpn/store.ts";
import { vpnService } from "./services/vpn/vpn-service.ts";
import { createWalletStore } from "./services/wallet/store.ts";
import { walletService } from "./services/wallet/wallet-service.ts";
import { type OnceCall, OnceConflict } from "./storage/once.ts";
import { everybody, type Viewer } from "./storage/ownership.ts";
import { QuotaExceeded, type QuotaLimits } from "./storage/quota.ts";
import { repeat } from "./storage/repeat.ts";
import { createOpenKeys } from "./storage/sealed-keys.ts";
import { openStore, type Store } from "./storage/store.ts";
import { RecordDamaged, StoreFailure } from "./storage/store-error.ts";
import { storeSettings } from "./store-settings.ts";

/** A server with everything that it holds open. */
export interface App {
  readonly server: Server;
  /** Stops serving, then lets go of the rest. */
  close(): Promise<void>;
}

/** What services are made of. */
interface Parts {
  readonly provider: CryptoProvider;
  readonly store: Store;
  readonly issuer: Issuer;
  /** Undefined if anyone may call. */
  readonly users: UserStore | undefined;
  readonly logIn: LogIn;
  readonly viewerOf: typeof viewerOf;
  readonly onceOf: typeof onceOf;
  readonly challengeLimits: { readonly perDevice: number; readonly perClient: number };
  readonly now: () => Date;
}

/** A package's services, and what they hold open. */
interface PackageServices {
  readonly services: readonly ServiceImplSpec[];
  close?(): Promise<void>;
}

/** Makes a package's services. */
type MakeServices = (parts: Parts) => PackageServices | Promise<PackageServices>;

/** Where a call came from, as open challenges are counted. */
const networkOfCall = (context: Pick<HandlerContext, "values">): string => networkOf(clientOf(context));

/** Milliseconds between looks for challenges that are long dead. */
const sweepMs = 60_000;

/** The services of each package. A new service is one line here. */
const packages: Readonly<Record<string, MakeServices>> = {
  pqc: (parts) => ({
    services: [
      createServiceImplSpec<typeof PqcService>(PqcService, pqcService({ ...parts, clientOf })),
      createServiceImplSpec<typeof TokenService>(
        TokenService,
        tokenService({ ...parts, callerOf, clientOf }),
      ),
    ],
  }),
  kms: (parts) => {
    const keys = createKmsStore(parts.store);
    const cache = createKeyCache({ provider: parts.provider, keys });
    const service = kmsService({ ...parts, keys, cache });
    return {
      services: [createServiceImplSpec<typeof KmsService>(KmsService, service)],
      close: cache.close,
    };
  },
  iot: (parts) => {
    const issueToken = (deviceId: string) => parts.issuer.issue(deviceId, { header: { use: deviceUse } });
    const devices = createIotStore(parts.store);
    const service = iotService({ ...parts, devices, issueToken, clientOf: networkOfCall });
    const stopSweeping = repeat(sweepMs, () => devices.removeDeadChallenges(parts.now()));
    return {
      services: [createServiceImplSpec<typeof IotService>(IotService, service)],
      close: async () => stopSweeping(),
    };
  },
  vpn: async (parts) => {
    const tunnels = createVpnStore(parts.store);
    const gateway = await openGateway(parts.store, parts.provider, tunnels);
    const service = vpnService({ ...parts, gateway, tunnels });
    return {
      services: [createServiceImplSpec<typeof VpnService>(VpnService, service)],
      close: async () => gateway.close(),
    };
  },
  dapp: (parts) => {
    const service = dappService({ ...parts, contracts: createDappStore(parts.store) });
    return { services: [createServiceImplSpec<typeof DappService>(DappService, service)] };
  },
  wallet: (parts) => {
    const service = walletService({ ...parts, wallets: createWalletStore(parts.store) });
    return { services: [createServiceImplSpec<typeof WalletService>(WalletService, service)] };
  },
  defi: (parts) => {
    const service = defiService({ ...parts, governance: createDefiStore(parts.store) });
    return { services: [createServiceImplSpec<typeof DefiService>(DefiService, service)] };
  },
  blockchain: (parts) => {
    const openKeys = createOpenKeys(parts.store, parts.provider);
    const service = blockchainService({ ...parts, chain: createChainStore(parts.store), openKeys });
    return {
      services: [createServiceImplSpec<typeof BlockchainService>(BlockchainService, service)],
      close: async () => openKeys.close(),
    };
  },
  nft: (parts) => {
    const service = nftService({ ...parts, tokens: createNftStore(parts.store) });
    return { services: [createServiceImplSpec<typeof NftService>(NftService, service)] };
  },
};

/**
 * Makes a server from settings.
 *
 * @throws ConfigError, StorageError, CryptoError with a sentence for the operator.
 */
export async function createApp(config: Config, logger: Logger): Promise<App> {
  const chosen = choosePackages(config.services);
  const now = (): Date => new Date();
  const metrics = createMetrics();
  const queue = new WorkQueue({
    threads: cryptoThreads(config),
    maxWaitMs: config.maxQueueMs,
    maxBacklogMs: config.maxBacklogMs,
  });
  const passwords = createPasswordLane({
    maxChecks: config.maxPasswordChecks,
    maxWaitMs: config.maxBacklogMs,
  });
  // What no call asks for is the server's own work.
  const provider = queueProvider(
    await createCryptoProvider(config.cryptoProvider),
    queue,
    () => currentCaller() ?? systemCaller,
  );
  metrics.watchQueue({ queue, passwords: passwords.lane });
  const opening = openStore({
    ...storeSettings(config),
    provider: provider.system,
    onCommit: metrics.storeCommitted,
    quotas: quotasOf(config),
  });
  const store = await opening.catch(async (error: unknown) => {
    await provider.close();
    throw error;
  });
  const issuer = await openIssuer({ provider, store: createIssuerStore(store), now });
  const users = config.auth === "token" ? createUserStore(store) : undefined;
  const logIn = users
    ? logInUsers({
        issuer,
        users,
        attempts: createAttempts(config.maxFailedLogins),
        verifyPassword: passwords.verify,
        networksOf,
      })
    : logInAnyone(issuer);
  const challengeLimits = {
    perDevice: config.maxChallengesPerDevice,
    perClient: config.maxChallengesPerClient,
  };
  const parts = { provider, store, issuer, users, logIn, viewerOf, onceOf, challengeLimits, now };
  const made = await Promise.all(chosen.map((make) => make(parts)));
  const server = await createServer({
    services: made.flatMap(({ services }) => services),
    logger,
    access: {
      mode: config.auth,
      authenticate: async (authorization) => {
        const holder = await authenticate(issuer, authorization, users);
        const check = () => requireNotRevoked(issuer, holder, users);
        return { ...holder, revocation: { group: revocationGroupOf(holder), check } };
      },
    },
    explainFailure,
    metrics,
    // The server describes itself with OpenAPI, whose clients expect the path to decide.
    routingOrder: "path",
    pages: [
      openApiPages({
        auth: config.auth,
        onError: (error) => logger.error({ err: error }, "the API description cannot be made"),
      }),
      protoPages,
      consolePages({
        auth: config.auth,
        onError: (error) => logger.error({ err: error }, "the console can not be made"),
      }),
    ],
    limits: {
      maxMetadataBytes: config.maxMetadataBytes,
      maxMessageBytes: config.maxMessageBytes,
      maxMessageElements: config.maxMessageElements,
      maxUnknownFields: config.maxUnknownFields,
      maxCallMs: config.maxCallMs,
      maxDrainMs: config.maxDrainMs,
      maxCalls: config.maxCalls,
      maxStreams: config.maxStreams,
      // With --auth open every caller on the machine is one client.
      maxCallsPerUser: config.auth === "open" ? 0 : config.maxCallsPerUser,
      maxStreamsPerUser: config.auth === "open" ? 0 : config.maxStreamsPerUser,
      maxCallsPerSecond: config.auth === "open" ? 0 : config.maxCallsPerSecond,
      maxConnections: config.maxConnections,
      maxBufferedBytes: config.maxBufferedBytes,
      maxBufferedBytesPerClient: config.maxBufferedBytesPerClient,
      maxWriteMs: config.maxWriteMs,
    },
    isHostAllowed:
      config.auth === "open" || config.allowedHosts.length > 0
        ? createHostCheck(config.allowedHosts, config.host)
        : undefined,
    metricsAccess: config.metrics === "auto" ? config.auth : config.metrics,
    trustedProxies: config.trustedProxies,
    tls: tlsFilesOf(config),
    corsOrigins: config.corsOrigins,
  });
  return {
    server,
    async close() {
      await server.close();
      for (const { close } of made) await close?.();
      issuer.close();
      await store.close();
      await provider.close();
    },
  };
}

/** The certificates and their keys. */
function tlsFilesOf({ tlsCert, tlsKey }: Config): TlsFiles[] {
  const keys = listFiles(tlsKey);
  return listFiles(tlsCert).map((certificate, i) => ({ certificate, key: keys[i] ?? "" }));
}

/** How many times as much an open server keeps: all its callers are one owner, and share one quota. */
const openFactor = 10;

/** How much each owner may keep. */
function quotasOf(config: Config): QuotaLimits {
  const factor = config.auth === "open" ? openFactor : 1;
  return {
    records: config.maxRecordsPerUser * factor,
    tunnels: config.maxTunnelsPerUser * factor,
    idempotencyKeys: config.maxIdempotencyKeysPerUser * factor,
  };
}

/** Threads of libuv's pool if nobody says how many. */
const defaultPoolThreads = 4;

/** Threads that compute: what checks of passwords leave of libuv's pool, or workers; no more than there are cores. */
function cryptoThreads({ maxPasswordChecks }: Config): number {
  const poolThreads = Number(process.env.UV_THREADPOOL_SIZE) || defaultPoolThreads;
  return Math.max(1, Math.min(os.availableParallelism(), poolThreads - maxPasswordChecks));
}

/**
 * Who makes a call, as services know them. Where no token was asked for, that is the system, which sees everybody's
 * records; so do administrators.
 */
export function viewerOf({ values }: Pick<HandlerContext, "values">): Viewer {
  const caller = values.get(callerKey);
  if (caller === undefined) return everybody;
  const { subject: user, role } = caller;
  // What authenticates callers knows their IDs; the server passes them on without looking.
  const userId = "userId" in caller && typeof caller.userId === "string" ? caller.userId : user;
  if (role === "device") return { user, userId, owner: userId, deviceId: user };
  return { user, userId, owner: role === "admin" ? undefined : userId };
}

/** Under which idempotency key a call came, if it has one; each user has keys of his own. */
export function onceOf(context: Pick<HandlerContext, "values">): OnceCall | undefined {
  const repeatable = repeatableOf(context);
  return repeatable && { ...repeatable, userId: viewerOf(context).userId };
}

/** Makes refusals of what the store throws; the cause is for the log. */
export function explainFailure(thrown: unknown): ConnectError | undefined {
  if (thrown instanceof OnceConflict) {
    const { idempotencyKey, message } = thrown;
    return refuse("IDEMPOTENCY_KEY_REUSED", message, { idempotencyKey });
  }
  if (thrown instanceof RecordDamaged) {
    const error = refuse("RECORD_DAMAGED", thrown.message, { record: thrown.record });
    error.cause = thrown.cause;
    return error;
  }
  if (thrown instanceof QuotaExceeded) {
    const { noun, limit, setting, message } = thrown;
    return refuse("QUOTA_EXCEEDED", message, { quota: noun, limit: String(limit), setting });
  }
  if (thrown instanceof CryptoBusy) {
    return refuseForNow("SERVER_BUSY", `${thrown.message}; try again later`, thrown.retryMs);
  }
  if (!(thrown instanceof StoreFailure)) return undefined;
  const error =
    thrown.code === "UNAVAILABLE"
      ? refuseForNow("STORE_UNAVAILABLE", thrown.message, storeRetryMs)
      : refuse(storeReasons[thrown.code], thrown.message);
  error.cause = thrown.cause;
  return error;
}

/** Milliseconds after which a call is worth repeating that the store could not be reached for. */
const storeRetryMs = 1000;

const storeReasons = {
  FULL: "STORE_FULL",
  CORRUPT: "STORE_DAMAGED",
  LOCKED: "MASTER_KEY_MISSING",
} as const;

function choosePackages(names: readonly string[]): MakeServices[] {
  const known = Object.keys(packages);
  return (names.includes("all") ? known : names).map((name) => {
    const make = Object.hasOwn(packages, name) ? packages[name] : undefined;
    if (make === undefined)
      throw new ConfigError(`--services: "${name}" is not known; known are all, ${known.join(", ")}`);
    return make;
  });
}
