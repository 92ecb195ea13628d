/** Servers that tests start on either database, and what a test can do to any of them. */
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Kysely } from "kysely";
import { afterAll, describe, onTestFinished } from "vitest";
import { type App, createApp } from "../../src/app.ts";
import type { Config } from "../../src/config.ts";
import type { Database, DatabaseLocation } from "../../src/database/database.ts";
import type { Schema } from "../../src/database/schema.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import type { AtEnd } from "../support/at-end.ts";
import { watchReasons } from "../support/declared-reasons.ts";
import { makeStoreDirectory } from "../support/empty-store.ts";
import { openDatabase } from "../support/open-store.ts";
import { describePostgres, freshDatabaseUrl, runsOn } from "../support/postgres.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";
import { callRest, type RestAnswer } from "./answers.ts";

/** Flags that select a database and its master key. */
export type TestDatabase = readonly string[];

/** Where a server starts, and how long it runs. */
export interface Place {
  /** The database of a server whose options name no other. */
  database(): Promise<TestDatabase>;
  readonly atEnd: AtEnd;
}

/** Starts one kind of server. */
export type StartIn<Options, Started> = (place: Place, options?: Options) => Promise<Started>;

/** Starts a server that stops with the test. */
export type Start<Options, Started> = (options?: Options) => Promise<Started>;

/** The server that all tests of one description share, for tests that look only at their own records. */
export type Shared<Started> = () => Promise<Started>;

/** What tests can do with the server that they share, which starts with its first use. */
export function useLate(shared: () => Promise<ServerUnderTest & { readonly grpc: Transport }>) {
  const grpc: Transport = {
    unary: async (...call) => (await shared()).grpc.unary(...call),
    stream: async (...call) => (await shared()).grpc.stream(...call),
  };
  const tamper: ServerUnderTest["tamper"] = (change) => shared().then((server) => server.tamper(change));
  const rest: ServerUnderTest["rest"] = async (...call) => (await shared()).rest(...call);
  return { grpc, tamper, rest };
}

/** What a description of tests receives: how to start servers, and clients of the shared server. */
export type Given<Options, Started, Clients> = ReturnType<typeof useLate> &
  Clients & { readonly start: Start<Options, Started>; readonly shared: Shared<Started> };

/** Starts two servers on one database. */
export type StartTwo<Started> = () => Promise<[Started, Started]>;

/** Milliseconds; the first test that needs a database waits until PostgreSQL has started. */
const timeout = 180_000;

/** Describes tests that use the server that `startIn` starts. */
type Describe = <Options, Started>(
  name: string,
  startIn: StartIn<Options, Started>,
  define: (start: Start<Options, Started>, shared: Shared<Started>) => void,
) => void;

/**
 * Describes tests on SQLite: what a service does with its records. Storage behaviour that both databases must
 * share has tests on both, in *.both.test.ts files, and third-party clients use every service on both
 * (test/interop).
 */
export const describeOnSqlite: Describe = (name, startIn, define) => {
  if (!runsOn("sqlite")) return;
  describe(name, () => {
    describe("on SQLite", { timeout }, () => defineOn("sqlite", startIn, define));
  });
};

/**
 * Describes the same tests for SQLite and, among the slow tests, for PostgreSQL: order, pages, races and
 * feeds.
 */
export const describeOnBoth: Describe = (name, startIn, define) => {
  describeOnSqlite(name, startIn, define);
  describePostgres(name, () => {
    describe("on PostgreSQL", { timeout }, () => defineOn("postgres", startIn, define));
  });
};

function defineOn<Options, Started>(
  kind: DatabaseLocation["kind"],
  startIn: StartIn<Options, Started>,
  define: (start: Start<Options, Started>, shared: Shared<Started>) => void,
): void {
  const placeUntil = (atEnd: AtEnd): Place => ({ database: () => makeDatabase(kind, atEnd), atEnd });
  const ends: (() => void | Promise<void>)[] = [];
  let server: Promise<Started> | undefined;
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  });
  define(
    (options) => startIn(placeUntil(onTestFinished), options),
    () => {
      server ??= startIn(placeUntil((end) => void ends.push(end)));
      return server;
    },
  );
}

/** Describes tests of replicas: two servers on one database, SQLite and, among the slow tests, PostgreSQL. */
export function describeTwoOnOne<Started>(
  name: string,
  startIn: StartIn<never, Started>,
  define: (startTwo: StartTwo<Started>) => void,
): void {
  const startTwoOn =
    (kind: DatabaseLocation["kind"]): StartTwo<Started> =>
    async () => {
      const database = await makeDatabase(kind, onTestFinished);
      const place: Place = { database: async () => database, atEnd: onTestFinished };
      return [await startIn(place), await startIn(place)];
    };
  if (runsOn("sqlite"))
    describe(name, () => {
      describe("on one SQLite database", { timeout }, () => define(startTwoOn("sqlite")));
    });
  describePostgres(name, () => {
    describe("on one PostgreSQL database", { timeout }, () => define(startTwoOn("postgres")));
  });
}

async function makeDatabase(kind: DatabaseLocation["kind"], atEnd: AtEnd): Promise<TestDatabase> {
  if (kind === "sqlite") return ["--data-dir", await makeStoreDirectory(atEnd)];
  return ["--data-dir", makeTemporaryDirectory(atEnd), "--database-url", await freshDatabaseUrl()];
}

/** Starts the whole program as configured, and checks the reasons of its refusals. */
export async function serveApp(config: Config): Promise<App & { readonly url: string }> {
  const packages = await loadPackages();
  // On a busy machine, let calls wait that would otherwise be refused.
  const app = await createApp({ ...config, maxQueueMs: 60_000 }, watchReasons(packages), { packages });
  const { port } = await app.server.listen(config.port, config.host);
  return { ...app, url: `http://${config.host}:${port}` };
}

/** What clients are built from. */
export interface Connections {
  readonly grpc: Transport;
  /** Connect, over HTTP/1.1. */
  readonly connect: Transport;
  /** Closes the gRPC connection, which would delay a graceful stop. */
  disconnect(): void;
}

/** Connects to the server at a URL. */
export function openConnections(url: string): Connections {
  const sessionManager = new Http2SessionManager(url);
  return {
    grpc: createGrpcTransport({ baseUrl: url, sessionManager }),
    connect: createConnectTransport({ baseUrl: url, httpVersion: "1.1" }),
    disconnect: () => sessionManager.abort(),
  };
}

/** What a test can do to any running server. */
export interface ServerUnderTest {
  readonly url: string;
  /** Calls over REST: `GET /api/nft/list`. */
  rest(line: string, body?: unknown, headers?: Record<string, string>): Promise<RestAnswer>;
  /** Reads and writes the database without the services' knowledge. */
  tamper<Result>(change: (db: Kysely<Schema>) => Result): Promise<Awaited<Result>>;
  /** Stops the server; a second call does nothing. */
  close(): Promise<void>;
}

/** A listening server. */
export interface Running {
  readonly url: string;
  readonly location: DatabaseLocation;
  stop(): Promise<void>;
}

/** Puts a listening server under test until the end. */
export function putUnderTest({ url, location, stop }: Running, atEnd: AtEnd): ServerUnderTest {
  let stopped: Promise<void> | undefined;
  const close = (): Promise<void> => {
    stopped ??= stop();
    return stopped;
  };
  atEnd(close);
  return {
    url,
    close,
    rest: (line, body, headers) => callRest(url, line, body, headers),
    tamper: tamperWith(location, atEnd),
  };
}

/**
 * Returns a function that changes a database while a server has it open; it stays open from the first change
 * to the end.
 */
export function tamperWith(location: DatabaseLocation, atEnd: AtEnd): ServerUnderTest["tamper"] {
  let opening: Promise<Database> | undefined;
  const open = async (): Promise<Database> => {
    const direct = await openDatabase(location, "existing");
    atEnd(() => direct.close());
    return direct;
  };
  return async <Result>(change: (db: Kysely<Schema>) => Result): Promise<Awaited<Result>> => {
    opening ??= open();
    return await change((await opening).writer);
  };
}

/** Starts the whole program as configured, and puts it under test with a gRPC connection. */
export async function startUnderTest(config: Config, atEnd: AtEnd) {
  const app = await serveApp(config);
  const { grpc, disconnect } = openConnections(app.url);
  const stop = async (): Promise<void> => {
    disconnect();
    app.server.destroy();
    await app.close();
  };
  const { location } = storeSettings(config);
  return { grpc, ...putUnderTest({ url: app.url, location, stop }, atEnd) };
}

/** Connects to a server as the caller with a token, until the connection has been idle for a moment. */
export function connectWithToken(baseUrl: string, token: string): Transport {
  const sendToken: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  return createGrpcTransport({ baseUrl, idleConnectionTimeoutMs: 100, interceptors: [sendToken] });
}
