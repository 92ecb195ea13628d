/** Servers that tests start on either database, and what a test does to any of them. */
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Kysely } from "kysely";
import { afterAll, describe, onTestFinished } from "vitest";
import { type App, createApp } from "../../src/app.ts";
import type { Config } from "../../src/config.ts";
import type { Database, DatabaseLocation } from "../../src/database/database.ts";
import type { Schema } from "../../src/database/schema.ts";
import type { AtEnd } from "../support/at-end.ts";
import { watchReasons } from "../support/declared-reasons.ts";
import { openDatabase } from "../support/open-store.ts";
import { describePostgres, freshDatabaseUrl, runsOn } from "../support/postgres.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";
import { callRest, type RestAnswer } from "./answers.ts";

/** The flags that say where a database and its master key are. */
export type TestDatabase = readonly string[];

/** Where a server starts, and how long it runs. */
export interface Place {
  /** The database of a server that is told no other. */
  database(): Promise<TestDatabase>;
  readonly atEnd: AtEnd;
}

/** Starts one kind of server. */
export type StartIn<Options, Started> = (place: Place, options?: Options) => Promise<Started>;

/** Starts a server that ends with the test. */
export type Start<Options, Started> = (options?: Options) => Promise<Started>;

/** The server that all tests of one description share; for those that look only at records of their own. */
export type Shared<Started> = () => Promise<Started>;

/** Starts two servers on one database. */
export type StartTwo<Started> = () => Promise<[Started, Started]>;

/** Milliseconds; the first to ask for a database waits until PostgreSQL has started. */
const timeout = 180_000;

/** Describes tests that use the server that `startIn` starts. */
type Describe = <Options, Started>(
  name: string,
  startIn: StartIn<Options, Started>,
  define: (start: Start<Options, Started>, shared: Shared<Started>) => void,
) => void;

/**
 * Describes tests on SQLite: those of what a service does with its records. What both databases must agree on has tests
 * on both, in files *.both.test.ts, and foreign clients use every service on both (test/interop).
 */
export const describeOnSqlite: Describe = (name, startIn, define) => {
  if (!runsOn("sqlite")) return;
  describe(name, () => {
    describe("on SQLite", { timeout }, () => defineOn("sqlite", startIn, define));
  });
};

/** Describes the same tests for SQLite and, among the slow ones, for PostgreSQL: those of order, pages, races and feeds. */
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

/** Describes tests of replicas: of two servers on one database, SQLite and, among the slow ones, PostgreSQL. */
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
  const flags = ["--data-dir", makeTemporaryDirectory(atEnd)];
  return kind === "sqlite" ? flags : [...flags, "--database-url", await freshDatabaseUrl()];
}

/** Starts the whole program where its settings say, and watches the reasons of its refusals. */
export async function serveApp(config: Config): Promise<App & { readonly url: string }> {
  const packages = await loadPackages();
  // On a busy machine, calls wait that would be refused otherwise.
  const app = await createApp({ ...config, maxQueueMs: 60_000 }, watchReasons(packages), { packages });
  const { port } = await app.server.listen(config.port, config.host);
  return { ...app, url: `http://${config.host}:${port}` };
}

/** What clients are made of. */
export interface Connections {
  readonly grpc: Transport;
  /** Connect, over HTTP/1.1. */
  readonly connect: Transport;
  /** Lets go of the gRPC connection, which would hold up a server that stops in order. */
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
  /** Reads and writes the database behind the back of the services. */
  tamper<Result>(change: (db: Kysely<Schema>) => Result): Promise<Awaited<Result>>;
  /** Stops the server; a second time does nothing. */
  close(): Promise<void>;
}

/** A server that listens. */
export interface Running {
  readonly url: string;
  readonly location: DatabaseLocation;
  stop(): Promise<void>;
}

/** Puts a server that listens under test, until the end. */
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

/** Returns what changes a database past the server that has it open; it stays open from the first change to the end. */
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
