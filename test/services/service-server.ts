/** One service behind the whole app, on either database: what tests of a service start. */
import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Kysely } from "kysely";
import { pino } from "pino";
import { afterAll, describe, expect, onTestFinished } from "vitest";
import { createApp, storeSettings } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { type Database, openDatabase } from "../../src/storage/database.ts";
import type { Schema } from "../../src/storage/schema.ts";
import { openStore } from "../../src/storage/store.ts";
import { describePostgres, freshDatabaseUrl } from "../postgres/shared.ts";
import { refusal } from "../refusal.ts";
import { makeTemporaryDirectory } from "../temporary-directory.ts";
import type { RestAnswer } from "./kms/kms-server.ts";

export { bytesOf, present, type RestAnswer, restRefusal } from "./kms/kms-server.ts";

/** A server that serves one package. */
export interface ServiceServer<Service extends DescService> {
  readonly url: string;
  /** "127.0.0.1:port". */
  readonly authority: string;
  /** Over gRPC. */
  readonly client: Client<Service>;
  /** Over Connect and HTTP/1.1. */
  readonly connect: Client<Service>;
  readonly database: TestDatabase;
  /** Calls over REST: `GET /api/nft/list`. */
  rest(line: string, body?: unknown, headers?: Record<string, string>): Promise<RestAnswer>;
  /** Writes to the database behind the back of the service. */
  tamper(change: (db: Kysely<Schema>) => Promise<unknown>): Promise<void>;
  /** Stops at once; a second time does nothing. */
  close(): Promise<void>;
}

/** The flags that say where a database and its master key are. */
export type TestDatabase = readonly string[];

/** Starts a server that ends with the test; two on one PostgreSQL database are replicas. */
export type Start<Service extends DescService> = (database?: TestDatabase) => Promise<ServiceServer<Service>>;

/** The server that all tests of one description share; for those that look only at records of their own. */
export type Shared<Service extends DescService> = () => Promise<ServiceServer<Service>>;

type AtEnd = (end: () => void | Promise<void>) => void;
type Kind = "sqlite" | "postgres";

/** Milliseconds; the first to ask for a database waits until PostgreSQL has started. */
const timeout = 60_000;

/** Describes the same tests for SQLite and for PostgreSQL. */
export function describeService<Service extends DescService>(
  name: string,
  service: Service,
  define: (start: Start<Service>, shared: Shared<Service>) => void,
): void {
  const defineOn = (kind: Kind): void => {
    const ends: (() => void | Promise<void>)[] = [];
    let server: Promise<ServiceServer<Service>> | undefined;
    const startOn = async (atEnd: AtEnd, database?: TestDatabase) =>
      startService(service, database ?? (await makeDatabase(kind, atEnd)), atEnd);
    afterAll(async () => {
      for (const end of ends.reverse()) await end();
    });
    define(
      (database) => startOn(onTestFinished, database),
      () => {
        server ??= startOn((end) => void ends.push(end));
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

/** Describes tests of replicas: of two servers on one PostgreSQL database. */
export function describeReplicas<Service extends DescService>(
  name: string,
  service: Service,
  define: (startTwo: () => Promise<[ServiceServer<Service>, ServiceServer<Service>]>) => void,
): void {
  describePostgres(name, () => {
    describe("on one PostgreSQL database", { timeout }, () =>
      define(async () => {
        const database = await makeDatabase("postgres", onTestFinished);
        return [
          await startService(service, database, onTestFinished),
          await startService(service, database, onTestFinished),
        ];
      }),
    );
  });
}

async function makeDatabase(kind: Kind, atEnd: AtEnd): Promise<TestDatabase> {
  const flags = ["--data-dir", makeTemporaryDirectory(atEnd)];
  return kind === "sqlite" ? flags : [...flags, "--database-url", await freshDatabaseUrl()];
}

async function startService<Service extends DescService>(
  service: Service,
  database: TestDatabase,
  atEnd: AtEnd,
): Promise<ServiceServer<Service>> {
  const name = service.typeName.split(".")[0] ?? "";
  const config = readConfig(["--port", "0", "--services", name, ...database], {});
  const app = await createApp(config, pino({ level: "silent" }));
  const { port } = await app.server.listen(config.port, config.host);
  const url = `http://${config.host}:${port}`;
  const sessionManager = new Http2SessionManager(url);
  let direct: Promise<Database> | undefined;
  const end = async (): Promise<void> => {
    await (await direct)?.close();
    sessionManager.abort();
    app.server.destroy();
    await app.close();
  };
  let ended: Promise<void> | undefined;
  const close = (): Promise<void> => {
    ended ??= end();
    return ended;
  };
  atEnd(close);
  return {
    url,
    authority: `${config.host}:${port}`,
    client: createClient(service, createGrpcTransport({ baseUrl: url, sessionManager })),
    connect: createClient(service, createConnectTransport({ baseUrl: url, httpVersion: "1.1" })),
    database,
    close,
    rest: (line, body, headers) => callRest(url, line, body, headers),
    async tamper(change) {
      direct ??= openDatabase(storeSettings(config).location, "existing");
      await change((await direct).writer);
    },
  };
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

/** Opens a secret of a database that no server has open, as whoever has its master key can. */
export async function readSecret(database: TestDatabase, identity: string): Promise<Uint8Array | undefined> {
  const provider = await createCryptoProvider("openssl");
  const store = await openStore({ ...storeSettings(readConfig(database, {})), provider });
  try {
    return await store.readSecret(identity);
  } finally {
    await store.close();
    await provider.close();
  }
}

let names = 0;

/** Call options with an Idempotency-Key that no other test has used. */
export function freshOrder(): { headers: { "idempotency-key": string } } {
  names += 1;
  return { headers: { "idempotency-key": `order ${names}` } };
}

/** Makes the same call under one Idempotency-Key: twice, 20 times at once under another; gives how many differ. */
export async function countRepeated<Answer>(
  call: (options: ReturnType<typeof freshOrder>) => Promise<Answer>,
  at20 = call,
): Promise<{ distinctOfTwo: number; distinctOf20: number }> {
  const order = freshOrder();
  const two = [await call(order), await call(order)];
  const together = freshOrder();
  const twenty = await Promise.all(Array.from({ length: 20 }, () => at20(together)));
  return { distinctOfTwo: countDistinct(two), distinctOf20: countDistinct(twenty) };
}

function countDistinct(answers: readonly unknown[]): number {
  const bigintToText = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
  return new Set(answers.map((answer) => JSON.stringify(answer, bigintToText))).size;
}

/** How calls came out: how many were answered, and how the others were refused. */
export async function outcomesOf(calls: readonly Promise<unknown>[]) {
  const settled = await Promise.allSettled(calls);
  const failed = settled.filter((one) => one.status === "rejected");
  const refusals = await Promise.all(failed.map(({ reason }) => refusal(Promise.reject(reason))));
  return { answered: settled.length - failed.length, refusals };
}

/** Reads a list to its end in pages of one size. */
export async function readPages<
  Page extends { readonly nextPageToken: string; readonly totalSize: number },
  Row,
>(read: (pageToken: string) => Promise<Page>, rowsOf: (page: Page) => readonly Row[]) {
  const pages: Row[][] = [];
  const totals: number[] = [];
  let pageToken = "";
  do {
    const page = await read(pageToken);
    pages.push([...rowsOf(page)]);
    totals.push(page.totalSize);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return { rows: pages.flat(), sizes: pages.map(({ length }) => length), totals: [...new Set(totals)] };
}

/** SHA-256 in hexadecimal. */
export function sha256(...parts: readonly (Uint8Array | string)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

/** The address of a raw public key, as contract.md has it. */
export function addressOf(publicKey: Uint8Array): string {
  return `0x${sha256(publicKey).slice(0, 40)}`;
}

/** The SubjectPublicKeyInfo of an ML-DSA-65 key up to the raw key (RFC 9881, section 4). */
const mldsa65Spki = Buffer.from("308207b2300b0609608648016503040312038207a100", "hex");

/** An ML-DSA-65 key for node:crypto, of its raw bytes. */
export function mldsa65Key(raw: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([mldsa65Spki, raw]), format: "der", type: "spki" });
}

/** Verifies an ML-DSA-65 signature with node:crypto. */
export function verifiesOutside(
  publicKey: Uint8Array | string,
  data: Uint8Array,
  signature: Uint8Array,
): boolean {
  const key = typeof publicKey === "string" ? createPublicKey(publicKey) : mldsa65Key(publicKey);
  return verify(null, data, key, signature);
}

/** The bytes of a base64 field of a REST answer. */
export function unbase64(text: unknown): Buffer {
  return Buffer.from(String(text), "base64");
}

/** Bytes with one bit changed. */
export function flip(bytes: Uint8Array, at = 20): Uint8Array {
  return Uint8Array.from(bytes, (byte, i) => (i === at ? byte ^ 1 : byte));
}

/** Refusals that several services have. */
export const invalid = (...fields: string[]) => ({
  code: "InvalidArgument",
  reason: "FIELD_INVALID",
  fields,
});
export const wrongLength = (...fields: string[]) => ({ ...invalid(...fields), reason: "LENGTH_INVALID" });
export const wrongKey = (...fields: string[]) => ({ ...invalid(...fields), reason: "KEY_INVALID" });
export const damaged = { code: "DataLoss", reason: "RECORD_DAMAGED" };
export const reused = { code: "AlreadyExists", reason: "IDEMPOTENCY_KEY_REUSED" };

/** Texts of REST answers that are not known beforehand. */
export const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/);
export const anAddress = expect.stringMatching(/^0x[0-9a-f]{40}$/);
export const aHash = expect.stringMatching(/^[0-9a-f]{64}$/);
export const aPem = expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/);
/** Base64 of so many bytes. */
export const base64Of = (bytes: number) =>
  expect.stringMatching(
    new RegExp(`^[A-Za-z0-9+/]{${Math.ceil((bytes * 4) / 3)}}${"=".repeat((3 - (bytes % 3)) % 3)}$`),
  );
/** An id: its kind and a UUID. */
export const anId = (kind: string) =>
  expect.stringMatching(
    new RegExp(`^${kind}-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`),
  );
