/** Test support for access tests: the whole app with `--auth token`, its callers, and a way to bypass it. */
import type { Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Logger } from "pino";
import { describe } from "vitest";
import { createApp } from "../../src/app.ts";
import { createClients } from "../../src/client/create-clients.ts";
import { readConfig } from "../../src/config.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { createClientStore } from "../../src/identity/clients.ts";
import { type Issuer, openIssuer } from "../../src/identity/issuer.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { createRevocations } from "../../src/identity/revocations.ts";
import { createUserStore, type UserRole } from "../../src/identity/users.ts";
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

/** The app, its callers, and ways to bypass it. */
export type AccessServer = Awaited<ReturnType<typeof startAccessServer>>;

/** What an operator with the database and its master key can use. */
export type Office = AccessServer["office"];

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
export async function startAccessServer(options: StartOptions) {
  const packages = await loadPackages();
  const { atEnd, args = [], logger = watchReasons(packages) } = options;
  const database = options.database ?? (await makeDatabase(atEnd));
  const limits = ["--max-calls-per-second", "0", "--max-queue-ms", "60000"];
  const defaults = ["--port", "0", "--auth", "token", "--issuer-url", issuerUrl, ...limits];
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
  /** gRPC clients that send this header, if any. */
  const connect = (authorization?: string, header: Readonly<Record<string, string>> = {}): Clients =>
    connectTo(url, sessionManager, authorization ? { authorization, ...header } : header);
  return {
    url,
    dataDir: config.dataDir,
    /** Users, clients and token issuer of the app's database. */
    office,
    /** Stops at once. Calling it again has no effect. */
    close,
    connect,
    /** Adds a user with a unique name and gives them a token. */
    async makePerson(role: UserRole = "user", name = ""): Promise<Person> {
      people += 1;
      const unique = name || `${role} ${people}`;
      // Nobody has this password: test users get their tokens without one.
      await office.users.add({ name: unique, role, passwordHash: "none" }, new Date());
      const token = await issueTo(office, unique);
      const userId = (await office.users.find(unique))?.userId ?? "";
      return { name: unique, userId, token, ...connect(`Bearer ${token}`) };
    },
    /** Calls over REST: `GET /api/kms/keys`. */
    rest(line: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
      const [method = "", target = ""] = line.split(" ");
      const content = body === undefined ? {} : { body: JSON.stringify(body) };
      const type = body === undefined ? {} : { "content-type": "application/json" };
      return fetch(url + target, { method, headers: { ...type, ...headers }, ...content });
    },
    /** Writes to the database, bypassing the app. */
    tamper: tamperWith(storeSettings(config).location, atEnd),
  };
}

/** Creates people with these roles, and then users: enough for any test. */
export async function makePeople(
  { makePerson }: AccessServer,
  ...[one, two, three, four]: UserRole[]
): Promise<[Person, Person, Person, Person]> {
  return [await makePerson(one), await makePerson(two), await makePerson(three), await makePerson(four)];
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
  const input = { subject: name, clientId: name, generation: undefined, clientGeneration: client.generation };
  const lists = { audiences, scopes, origins: [], earlierActors: [] };
  return (await issuer.issueAccessToken({ ...input, ...lists })).token;
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
  /** Issues tokens as the app would at a different time. */
  const issuerAt = async (now?: Date): Promise<Issuer> => {
    const parts = { provider, store: createIssuerStore(store), now: () => now ?? new Date() };
    const issuer = await openIssuer(parts, identitySettings(config).accessTokens);
    opened.push(issuer);
    return issuer;
  };
  const [users, clients] = [createUserStore(store), createClientStore(store)];
  const revocations = createRevocations(store);
  const office = { provider, users, clients, revocations, issuer: await issuerAt(), issuerAt };
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
  const createTransport = () => transport;
  const { token: tokens, blockchain: chain, ...clients } = createClients(baseUrl, { createTransport });
  return { transport, tokens, chain, ...clients };
}

/** Flags that select a new database. */
export async function makeDatabase(atEnd: AtEnd): Promise<string[]> {
  return ["--data-dir", await makeStoreDirectory(atEnd)];
}

/** Timeout per test, in milliseconds. */
export const timeout = 180_000;

/** Describes tests that share a server with these additional flags. */
export function describeAccess(
  name: string,
  define: (shared: () => Promise<AccessServer>) => void,
  args: readonly string[] = [],
): void {
  describe(name, { timeout }, () => {
    const atEnd = endAfterAll();
    let server: Promise<AccessServer> | undefined;
    define(() => {
      server ??= startAccessServer({ atEnd, args });
      return server;
    });
  });
}
