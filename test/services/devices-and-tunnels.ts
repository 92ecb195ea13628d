/** iot.IotService and vpn.VpnService of the whole app, on either database, and the keys of their callers. */
import { createPublicKey, generateKeyPairSync, hash, type KeyObject, sign, verify } from "node:crypto";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Kysely } from "kysely";
import { pino } from "pino";
import { afterAll, describe, onTestFinished } from "vitest";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { createApp, storeSettings } from "../../src/app.ts";
import { type Config, readConfig } from "../../src/config.ts";
import { openDatabase } from "../../src/storage/database.ts";
import type { Schema } from "../../src/storage/schema.ts";
import { describePostgres, freshDatabaseUrl } from "../postgres/shared.ts";
import { makeTemporaryDirectory } from "../temporary-directory.ts";
import { errorOf } from "../transcoding/client.ts";

/** Clients of the device service and of the gateway. */
export type IotClient = Client<typeof IotService>;
export type VpnClient = Client<typeof VpnService>;

/** Clients, over gRPC unless the name says otherwise. */
export interface Clients {
  readonly iot: IotClient;
  readonly vpn: VpnClient;
  /** Over Connect and HTTP/1.1. */
  readonly connectIot: IotClient;
  readonly connectVpn: VpnClient;
  /** Lets go of the connection. */
  disconnect(): void;
}

/** An answer of the REST side, read to its end. */
export interface RestAnswer {
  readonly status: number;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

/** A running app. */
export interface TestApp extends Clients {
  readonly url: string;
  readonly config: Config;
  /** Calls over REST: `GET /api/iot/devices`. */
  rest(line: string, body?: unknown): Promise<RestAnswer>;
  /** Reads and writes the database behind the back of the services. */
  tamper<T>(change: (db: Kysely<Schema>) => Promise<T>): Promise<T>;
  /** Stops in order; a second time does nothing. */
  close(): Promise<void>;
}

type Kind = "sqlite" | "postgres";
type AtEnd = (end: () => void | Promise<void>) => void;

/** Starts an app of the test's own; on a place of its own if it gives none. */
export type StartApp = (place?: Config) => Promise<TestApp>;

/** The app that all tests of one `describeApp` share; for those that look only at what is theirs. */
export type SharedApp = () => Promise<TestApp>;

/** Milliseconds; the first to ask for a database waits until PostgreSQL has started. */
const timeout = 60_000;

/** Describes the same tests for SQLite and for PostgreSQL. */
export function describeApp(name: string, define: (start: StartApp, shared: SharedApp) => void): void {
  const defineOn = (kind: Kind): void => {
    const ends: (() => void | Promise<void>)[] = [];
    let app: Promise<TestApp> | undefined;
    afterAll(async () => {
      for (const end of ends.reverse()) await end();
    });
    const atEndOfFile: AtEnd = (end) => void ends.push(end);
    define(
      async (place) => startApp(place ?? (await makePlace(kind))),
      () => {
        app ??= makePlace(kind, atEndOfFile).then((place) => startApp(place, atEndOfFile));
        return app;
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

/** Describes tests of two apps on one PostgreSQL database. */
export function describeReplicas(name: string, define: (startTwo: () => Promise<TestApp[]>) => void): void {
  describePostgres(name, () => {
    describe("on one PostgreSQL database", { timeout }, () =>
      define(async () => {
        const place = await makePlace("postgres");
        return [await startApp(place), await startApp(place)];
      }),
    );
  });
}

/** Settings with a data directory, and a database, of their own. */
export async function makePlace(kind: Kind, atEnd: AtEnd = onTestFinished): Promise<Config> {
  const databaseUrl = kind === "postgres" ? ["--database-url", await freshDatabaseUrl()] : [];
  return settingsIn(makeTemporaryDirectory(atEnd), ...databaseUrl);
}

/** Settings of an app in a directory. */
export function settingsIn(dataDir: string, ...args: string[]): Config {
  return readConfig(["--port", "0", "--data-dir", dataDir, ...args], {});
}

/** Starts an app. */
export async function startApp(config: Config, atEnd: AtEnd = onTestFinished): Promise<TestApp> {
  const app = await createApp(config, pino({ level: "silent" }));
  const { port } = await app.server.listen(0, "127.0.0.1");
  const url = `http://127.0.0.1:${port}`;
  const clients = connectTo(url);
  const end = async (): Promise<void> => {
    clients.disconnect();
    await app.close();
  };
  let ended: Promise<void> | undefined;
  const close = (): Promise<void> => {
    ended ??= end();
    return ended;
  };
  atEnd(close);
  return {
    ...clients,
    url,
    config,
    close,
    rest: (line, body) => callRest(url, line, body),
    async tamper(change) {
      const direct = await openDatabase(storeSettings(config).location, "existing");
      try {
        return await change(direct.writer);
      } finally {
        await direct.close();
      }
    },
  };
}

/** Makes clients of the app at a URL. */
export function connectTo(url: string): Clients {
  const sessionManager = new Http2SessionManager(url);
  const grpc = createGrpcTransport({ baseUrl: url, sessionManager });
  const connect = createConnectTransport({ baseUrl: url, httpVersion: "1.1" });
  return {
    iot: createClient(IotService, grpc),
    vpn: createClient(VpnService, grpc),
    connectIot: createClient(IotService, connect),
    connectVpn: createClient(VpnService, connect),
    disconnect: () => sessionManager.abort(),
  };
}

async function callRest(url: string, line: string, body?: unknown): Promise<RestAnswer> {
  const [method = "", target = ""] = line.split(" ");
  const content =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await fetch(url + target, { method, ...content });
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

/** The UTF-8 bytes of a text. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** Bytes as JSON has them. */
export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}

/** Bytes with the lowest bit of one turned over. */
export function flipBit(bytes: Uint8Array, at = 0): Uint8Array<ArrayBuffer> {
  const flipped = Uint8Array.from(bytes);
  flipped[at] = (flipped[at] ?? 0) ^ 1;
  return flipped;
}

/** Somebody with a signing key of his own, made by node:crypto. */
export interface Signer {
  /** Raw. */
  readonly publicKey: Uint8Array<ArrayBuffer>;
  readonly publicKeyPem: string;
  sign(data: Uint8Array): Uint8Array<ArrayBuffer>;
}

/** Makes a key pair outside of the services: of a device (ML-DSA-44) or a vendor (ML-DSA-87). */
export function makeSigner(algorithm: "ml-dsa-44" | "ml-dsa-65" | "ml-dsa-87"): Signer {
  const { publicKey, privateKey } = generateKeyPairSync(algorithm);
  return {
    publicKey: rawOf(publicKey),
    publicKeyPem: publicKey.export({ format: "pem", type: "spki" }).toString(),
    sign: (data) => Uint8Array.from(sign(null, data, privateKey)),
  };
}

/** The raw bytes of a public key. */
export function rawOf(publicKey: KeyObject): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(publicKey.export({ format: "raw-public" }));
}

/** Verifies a signature with node:crypto and nothing else than the PEM that a service gave. */
export function verifiesOutside(publicKeyPem: string, data: Uint8Array, signature: Uint8Array): boolean {
  return verify(null, data, createPublicKey(publicKeyPem), signature);
}

/** SHA-256, 64 lower-case hexadecimal digits. */
export function sha256(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex");
}

/** A stream of requests that the test sends one by one. */
export interface Outgoing<Request> extends AsyncIterable<Request> {
  send(request: Request): void;
  end(): void;
}

/** Makes a stream of requests. */
export function createOutgoing<Request>(): Outgoing<Request> {
  const waiting: (Request | undefined)[] = [];
  let wake = (): void => {};
  const put = (request: Request | undefined): void => {
    waiting.push(request);
    wake();
  };
  return {
    send: put,
    end: () => put(undefined),
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (waiting.length === 0)
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        const next = waiting.shift();
        if (next === undefined) return;
        yield next;
      }
    },
  };
}
