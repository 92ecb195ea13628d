/** kms.KmsService behind servers of their own, on either database, wired as src/app.ts does. */
import { createPublicKey, verify } from "node:crypto";
import { type Client, createClient, createServiceImplSpec } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Kysely } from "kysely";
import { afterAll, describe, onTestFinished } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { explainFailure, onceOf, viewerOf } from "../../../src/app.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { Server, ServerLimits } from "../../../src/server/server.ts";
import { createKeyCache } from "../../../src/services/kms/key-cache.ts";
import { kmsService } from "../../../src/services/kms/kms-service.ts";
import { createKmsStore } from "../../../src/services/kms/store.ts";
import {
  type Database,
  type DatabaseLocation,
  openDatabase,
  sqliteIn,
} from "../../../src/storage/database.ts";
import { type MasterKeySource, masterKeyIn } from "../../../src/storage/master-key.ts";
import type { Schema } from "../../../src/storage/schema.ts";
import { openStore, type Store } from "../../../src/storage/store.ts";
import { describePostgres, freshDatabaseUrl } from "../../postgres/shared.ts";
import { serve } from "../../server/serve.ts";
import { makeTemporaryDirectory } from "../../temporary-directory.ts";
import { errorOf } from "../../transcoding/client.ts";

/** A client of the key service. */
export type KmsClient = Client<typeof KmsService>;

/** An answer of the REST side, read to its end. */
export interface RestAnswer {
  readonly status: number;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

/** A server that serves the key service. */
export interface KmsServer {
  readonly url: string;
  /** Over gRPC. */
  readonly kms: KmsClient;
  /** Over Connect and HTTP/1.1. */
  readonly connect: KmsClient;
  readonly server: Server;
  readonly store: Store;
  readonly database: TestDatabase;
  /** Calls over REST: `GET /api/kms/keys`. */
  rest(line: string, body?: unknown, headers?: Record<string, string>): Promise<RestAnswer>;
  /** Writes to the database behind the back of the service. */
  tamper(change: (db: Kysely<Schema>) => Promise<unknown>): Promise<void>;
  /** Stops at once; a second time does nothing. */
  close(): Promise<void>;
}

/** A database, and the master key that opens it. */
export interface TestDatabase {
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
}

/** How a server is to be. */
export interface StartOptions {
  /** A fresh one if left out; two servers on one are replicas. */
  readonly database?: TestDatabase;
  readonly limits?: Partial<ServerLimits>;
  /** The clock of the store. */
  readonly now?: () => Date;
  /** "token" wants a token, and takes the whole of it as its subject; "open" is the default. */
  readonly auth?: "open" | "token";
}

/** Starts a server that ends with the test. */
export type StartKms = (options?: StartOptions) => Promise<KmsServer>;

/** The server that all tests of one `describeKms` share; for those that look only at keys of their own. */
export type SharedKms = () => Promise<KmsServer>;

type AtEnd = (end: () => void | Promise<void>) => void;

/** Milliseconds; the first to ask for a database waits until PostgreSQL has started. */
const timeout = 60_000;

/** Describes the same tests for SQLite and for PostgreSQL. */
export function describeKms(name: string, define: (start: StartKms, shared: SharedKms) => void): void {
  const defineOn = (kind: DatabaseLocation["kind"]): void => {
    const ends: (() => void | Promise<void>)[] = [];
    let server: Promise<KmsServer> | undefined;
    const startOn = async (options: StartOptions, atEnd: AtEnd) =>
      startKmsServer({ ...options, database: options.database ?? (await makeDatabase(kind, atEnd)) }, atEnd);
    afterAll(async () => {
      for (const end of ends.reverse()) await end();
    });
    define(
      (options = {}) => startOn(options, onTestFinished),
      () => {
        server ??= startOn({}, (end) => void ends.push(end));
        return server;
      },
    );
  };
  describe(name, () => {
    describe("on SQLite", { timeout }, () => defineOn("sqlite"));
  });
  describePostgres(name, () => {
    describe("on PostgreSQL", { timeout }, () => defineOn("postgres"));
  });
}

/** Describes tests of replicas: of several servers on one PostgreSQL database. */
export function describeReplicas(name: string, define: (startTwo: () => Promise<KmsServer[]>) => void): void {
  const startTwo = async () => {
    const database = await makeDatabase("postgres", onTestFinished);
    return [await startKmsServer({ database }), await startKmsServer({ database })];
  };
  describePostgres(name, () => {
    describe("on one PostgreSQL database", { timeout }, () => define(startTwo));
  });
}

async function makeDatabase(kind: DatabaseLocation["kind"], atEnd: AtEnd): Promise<TestDatabase> {
  const dataDir = makeTemporaryDirectory(atEnd);
  const location: DatabaseLocation =
    kind === "sqlite" ? sqliteIn(dataDir) : { kind, url: await freshDatabaseUrl() };
  return { location, masterKey: masterKeyIn(dataDir) };
}

/** A database at a URL, for tests with a PostgreSQL server of their own. */
export function databaseAt(url: string): TestDatabase {
  return { location: { kind: "postgres", url }, masterKey: masterKeyIn(makeTemporaryDirectory()) };
}

/** Starts a server on a database. */
export async function startKmsServer(
  { database, limits = {}, now, auth = "open" }: StartOptions & { readonly database: TestDatabase },
  atEnd: AtEnd = onTestFinished,
): Promise<KmsServer> {
  const provider = await createCryptoProvider("openssl");
  const store = await openStore({ ...database, provider, ...(now && { now }) });
  const keys = createKmsStore(store);
  const cache = createKeyCache({ provider, keys });
  const parts = { provider, store, keys, cache, viewerOf, onceOf };
  const { server, url } = await serve({
    services: [createServiceImplSpec<typeof KmsService>(KmsService, kmsService(parts))],
    access: { mode: auth, authenticate: async (authorization) => callerNamed(authorization) },
    explainFailure,
    limits,
  });
  const sessionManager = new Http2SessionManager(url);
  let direct: Promise<Database> | undefined;
  const end = async (): Promise<void> => {
    await (await direct)?.close();
    sessionManager.abort();
    server.destroy();
    await server.close();
    await cache.close();
    await store.close();
    await provider.close();
  };
  let ended: Promise<void> | undefined;
  const close = (): Promise<void> => {
    ended ??= end();
    return ended;
  };
  atEnd(close);
  return {
    url,
    kms: createClient(KmsService, createGrpcTransport({ baseUrl: url, sessionManager })),
    connect: createClient(KmsService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" })),
    server,
    store,
    database,
    close,
    rest: (line, body, headers) => callRest(url, line, body, headers),
    async tamper(change) {
      direct ??= openDatabase(database.location, "existing");
      await change((await direct).writer);
    },
  };
}

function callerNamed(authorization: string | null) {
  const subject = authorization?.replace("Bearer ", "") ?? "nobody";
  return { subject, role: "admin" as const, issuedAt: new Date(0), expiresAt: new Date(0) };
}

async function callRest(
  url: string,
  line: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<RestAnswer> {
  const [method = "", target = ""] = line.split(" ");
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const response = await fetch(url + target, { method, headers: { ...type, ...headers }, ...content });
  const text = await response.text();
  return { status: response.status, text, json: JSON.parse(text) };
}

/** How a REST call was refused: what a program can act on. */
export function restRefusal({ status, text }: RestAnswer) {
  return { status, ...errorOf(text) };
}

/** What an answer must have. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the answer lacks something");
  return value;
}

/** Makes a key; ML-DSA-44 unless the test wants another, for it is the fastest. */
export async function createKey(
  kms: KmsClient,
  { algorithm = "ML-DSA-44", alias = "" }: { algorithm?: string; alias?: string } = {},
): Promise<KeyRecord> {
  return present((await kms.createKey({ algorithm, alias })).result);
}

/** The UTF-8 bytes of a text. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** Verifies a signature with node:crypto and nothing else than the PEM that the service gave. */
export function verifiesOutside(
  { publicKeyPem }: KeyRecord,
  data: Uint8Array,
  signature: Uint8Array,
  context: Uint8Array = new Uint8Array(),
): boolean {
  return verify(null, data, { key: createPublicKey(present(publicKeyPem)), context }, signature);
}

/** Reads the audit log of a key, or the whole of it; oldest first. */
export async function readAudit(kms: KmsClient, keyId = ""): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  let pageToken = "";
  do {
    const page = await kms.getAuditLog({ keyId, pageToken });
    entries.push(...page.auditLog);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return entries;
}

/** What was done with a key, one line each: `SIGN OK input=data`. */
export async function readDeeds(kms: KmsClient, keyId = ""): Promise<string[]> {
  const entries = await readAudit(kms, keyId);
  return entries.map(({ operation, outcome, details }) => `${operation} ${outcome} ${details}`);
}
