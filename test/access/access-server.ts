/** Test support for access tests: the whole app with `--auth token`, its callers, and a way to bypass it. */
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { describe } from "vitest";
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
import { createApp } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import type { Schema } from "../../src/database/schema.ts";
import { type ClientStore, createClientStore } from "../../src/identity/clients.ts";
import { type Issuer, openIssuer } from "../../src/identity/issuer.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { createRevocations, type Revocations } from "../../src/identity/revocations.ts";
import { createUserStore, type UserRole, type UserStore } from "../../src/identity/users.ts";
import { identitySettings } from "../../src/settings/identity-settings.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { tamperWith } from "../services/app-under-test.ts";
import { type AtEnd, endAfterAll } from "../support/at-end.ts";
import { issuerUrl } from "../support/clients.ts";
import { watchReasons } from "../support/declared-reasons.ts";
import { makeStoreDirectory } from "../support/empty-store.ts";
import { openStore } from "../support/open-store.ts";
import { loadPackages, loadSettings } from "../support/whole-program.ts";

/** A client of each service, all with the same authorization. */
export type Clients = ReturnType<typeof connectTo>;

/** A person with a token, and clients that send it. */
export interface Person extends Clients {
  readonly name: string;
  /** Owner ID of what they create. */
  readonly userId: string;
  readonly token: string;
}

export interface AccessServer {
  readonly url: string;
  readonly dataDir: string;
  /** gRPC clients that send this header, if any. */
  connect(authorization?: string, header?: Readonly<Record<string, string>>): Clients;
  /** Adds a user with a unique name and gives them a token. */
  makePerson(role?: UserRole, name?: string): Promise<Person>;
  /** Calls over REST: `GET /api/kms/keys`. */
  rest(line: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Writes to the database, bypassing the app. */
  tamper<Result>(change: (db: Kysely<Schema>) => Promise<Result>): Promise<Result>;
  /** Users, clients and token issuer of the app's database. */
  readonly office: Office;
  /** Stops at once. Calling it again has no effect. */
  close(): Promise<void>;
}

/** What an operator with the database and its master key can use. */
export interface Office {
  readonly provider: CryptoProvider;
  readonly users: UserStore;
  readonly clients: ClientStore;
  readonly issuer: Issuer;
  readonly revocations: Revocations;
  /** Issues tokens as the app would at a different time. */
  issuerAt(now: Date): Promise<Issuer>;
}

/** How to start an app. */
export interface StartOptions {
  readonly atEnd: AtEnd;
  /** Flags that select the database; default: a new one on SQLite. */
  readonly database?: readonly string[];
  /** Additional flags. */
  readonly args?: readonly string[];
  readonly logger?: Logger;
}

let people = 0;

/** Starts the app with `--auth token`, without load or rate limits unless the flags set them. */
export async function startAccessServer(options: StartOptions): Promise<AccessServer> {
  const packages = await loadPackages();
  const { atEnd, args = [], logger = watchReasons(packages) } = options;
  const database = options.database ?? (await makeDatabase(atEnd));
  const defaults = [
    "--port",
    "0",
    "--auth",
    "token",
    "--max-calls-per-second",
    "0",
    "--max-queue-ms",
    "60000",
    "--issuer-url",
    issuerUrl,
  ];
  const config = readConfig([...defaults, ...database, ...args], {}, await loadSettings());
  const app = await createApp(config, logger, { packages });
  const { port } = await app.server.listen(0, "127.0.0.1");
  const url = `http://127.0.0.1:${port}`;
  const sessionManager = new Http2SessionManager(url);
  const { office, closeOffice } = await openOffice(config);
  let ended: Promise<void> | undefined;
  const close = (): Promise<void> => {
    ended ??= (async () => {
      await closeOffice();
      sessionManager.abort();
      app.server.destroy();
      await app.close();
    })();
    return ended;
  };
  atEnd(close);
  const tamper = tamperWith(storeSettings(config).location, atEnd);
  const connect: AccessServer["connect"] = (authorization, header = {}) =>
    connectTo(url, sessionManager, authorization ? { authorization, ...header } : header);
  return {
    url,
    dataDir: config.dataDir,
    office,
    close,
    connect,
    async makePerson(role = "user", name = "") {
      people += 1;
      const unique = name || `${role} ${people}`;
      // Nobody has this password: test users get their tokens without one.
      await office.users.add({ name: unique, role, passwordHash: "none" }, new Date());
      const token = await issueTo(office, unique);
      const userId = (await office.users.find(unique))?.userId ?? "";
      return { name: unique, userId, token, ...connect(`Bearer ${token}`) };
    },
    rest(line, body, headers = {}) {
      const [method = "", target = ""] = line.split(" ");
      const content = body === undefined ? {} : { body: JSON.stringify(body) };
      const type = body === undefined ? {} : { "content-type": "application/json" };
      return fetch(url + target, { method, headers: { ...type, ...headers }, ...content });
    },
    tamper,
  };
}

/** Creates enough users for any test. */
export async function makePeople({ makePerson }: AccessServer): Promise<[Person, Person, Person, Person]> {
  return [await makePerson(), await makePerson(), await makePerson(), await makePerson()];
}

/** Issues an access token to a client, for itself, in its current state. */
export async function issueToClient(
  { clients, issuer }: Office,
  name: string,
  scopes: readonly string[],
  audiences: readonly string[] = [issuerUrl],
): Promise<string> {
  const client = await clients.find(name);
  if (client === undefined) throw new Error(`unknown client ${name}`);
  const input = {
    subject: name,
    generation: undefined,
    audiences,
    clientId: name,
    scopes,
    origins: [],
    earlierActors: [],
  };
  return (await issuer.issueAccessToken({ ...input, clientGeneration: client.generation })).token;
}

/** Issues a token to a user in their current state. */
export async function issueTo({ users, issuer }: Office, name: string): Promise<string> {
  const user = await users.find(name);
  if (user === undefined) throw new Error(`unknown user ${name}`);
  return (await issuer.issue(name, { generation: user.generation })).token;
}

/** Opens the office of a database, next to its server. */
export async function openOffice(config: ReturnType<typeof readConfig>) {
  const provider = await createCryptoProvider("openssl");
  const store = await openStore({ ...storeSettings(config), provider });
  const opened: Issuer[] = [];
  const issuerAt = async (now?: Date): Promise<Issuer> => {
    const parts = { provider, store: createIssuerStore(store), now: () => now ?? new Date() };
    const issuer = await openIssuer(parts, identitySettings(config).accessTokens);
    opened.push(issuer);
    return issuer;
  };
  const [users, clients] = [createUserStore(store), createClientStore(store)];
  const revocations = createRevocations(store);
  const office: Office = { provider, users, clients, revocations, issuer: await issuerAt(), issuerAt };
  const closeOffice = async (): Promise<void> => {
    for (const issuer of opened) await issuer.close();
    await store.close();
    await provider.close();
  };
  return { office, closeOffice };
}

function connectTo(
  baseUrl: string,
  sessionManager: Http2SessionManager,
  header: Readonly<Record<string, string>>,
) {
  const sendHeader: Interceptor = (next) => (req) => {
    for (const [name, value] of Object.entries(header)) req.header.set(name, value);
    return next(req);
  };
  const transport = createGrpcTransport({ baseUrl, sessionManager, interceptors: [sendHeader] });
  return {
    transport,
    pqc: createClient(PqcService, transport),
    tokens: createClient(TokenService, transport),
    kms: createClient(KmsService, transport),
    iot: createClient(IotService, transport),
    vpn: createClient(VpnService, transport),
    dapp: createClient(DappService, transport),
    wallet: createClient(WalletService, transport),
    defi: createClient(DefiService, transport),
    chain: createClient(BlockchainService, transport),
    nft: createClient(NftService, transport),
  };
}

/** Flags that select a new database. */
export async function makeDatabase(atEnd: AtEnd): Promise<string[]> {
  return ["--data-dir", await makeStoreDirectory(atEnd)];
}

/** Timeout per test, in milliseconds. */
export const timeout = 180_000;

/** Describes tests that share a server. */
export function describeAccess(name: string, define: (shared: () => Promise<AccessServer>) => void): void {
  describe(name, { timeout }, () => {
    const atEnd = endAfterAll();
    let server: Promise<AccessServer> | undefined;
    define(() => {
      server ??= startAccessServer({ atEnd });
      return server;
    });
  });
}
