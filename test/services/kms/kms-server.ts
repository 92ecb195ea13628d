/** kms.KmsService on its own servers, on either database, wired as in src/app.ts. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient, createServiceImplSpec, type Transport } from "@connectrpc/connect";
import { onTestFinished } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { type CreateKeyRequestSchema, KmsService, type SignRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { Background } from "../../../src/database/background.ts";
import type { DatabaseLocation } from "../../../src/database/database.ts";
import { type MasterKeySource, masterKeyIn } from "../../../src/secrets/master-key.ts";
import { explanations } from "../../../src/services/explain-failure.ts";
import { createKeyCache } from "../../../src/services/kms/key-cache.ts";
import { createSchedule } from "../../../src/services/kms/schedule.ts";
import { kmsService } from "../../../src/services/kms/service.ts";
import { createKmsStore } from "../../../src/services/kms/store.ts";
import { storeSettings } from "../../../src/settings/store-settings.ts";
import type { Store } from "../../../src/store/store.ts";
import { serve } from "../../server/serve.ts";
import type { AtEnd } from "../../support/at-end.ts";
import { logVerification, openStore } from "../../support/open-store.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { wrapKeyFile } from "../../support/wrap-key.ts";
import { present } from "../answers.ts";
import {
  describeOnBoth,
  describeOnSqlite,
  describeTwoOnOne,
  type Given,
  openConnections,
  type Place,
  putUnderTest,
  type ServerUnderTest,
  type StartTwo,
  useLate,
} from "../app-under-test.ts";
import * as outside from "../node-crypto.ts";
import { readAudit } from "./read-audit.ts";

export type KmsClient = Client<typeof KmsService>;

/** A server that serves the key service. */
export interface KmsServer extends ServerUnderTest {
  readonly grpc: Transport;
  /** Over gRPC. */
  readonly kms: KmsClient;
  /** Over Connect and HTTP/1.1. */
  readonly connect: KmsClient;
  readonly store: Store;
  readonly database: KmsDatabase;
  /** Does the scheduled work that is due by the server's clock. */
  readonly doDueWork: () => Promise<void>;
  readonly reportOverdue: () => Promise<void>;
}

/** A database, and the master key that opens it. */
export interface KmsDatabase {
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
}

/** Server options. */
export interface StartOptions {
  /** A fresh database if omitted; two servers on one database are replicas. */
  readonly database?: KmsDatabase;
  /** Clock of the store and the service. */
  readonly now?: () => Date;
  /** With "token", all of a token is its user's name, and a caller without one is an administrator. Default: "open". */
  readonly auth?: "open" | "token";
  /** Receives failures of background work. */
  readonly background?: Background;
}

/** Describes tests that use servers of the key service. */
const describeWith =
  (describeOn: typeof describeOnBoth) =>
  (
    name: string,
    define: (given: Given<StartOptions, KmsServer, { readonly kms: KmsClient }>) => void,
  ): void =>
    describeOn(name, startIn, (start, shared) => {
      const late = useLate(shared);
      define({ start, shared, ...late, kms: createClient(KmsService, late.grpc) });
    });

/** Describes tests on SQLite: see `describeOnSqlite`. */
export const describeKms = describeWith(describeOnSqlite);

/** Describes the same tests for SQLite and for PostgreSQL: see `describeOnBoth`. */
export const describeKmsOnBoth = describeWith(describeOnBoth);

/** Describes tests of replicas: see `describeTwoOnOne`. */
export function describeReplicas(name: string, define: (startTwo: StartTwo<KmsServer>) => void): void {
  describeTwoOnOne(name, startIn, define);
}

async function startIn(place: Place, options: StartOptions = {}): Promise<KmsServer> {
  const database = options.database ?? storeSettings(readConfig(await place.database(), {}));
  return startKmsServer({ ...options, database }, place.atEnd);
}

/** Returns a database at a URL, for tests with their own PostgreSQL server. */
export function databaseAt(url: string): KmsDatabase {
  return { location: { kind: "postgres", url }, masterKey: masterKeyIn(makeTemporaryDirectory()) };
}

/** Starts a server on a database. */
export async function startKmsServer(
  { database, now, auth = "open", background }: StartOptions & { readonly database: KmsDatabase },
  atEnd: AtEnd = onTestFinished,
): Promise<KmsServer> {
  const provider = await createCryptoProvider("openssl");
  const store = await openStore({
    ...database,
    provider,
    ...(now && { now }),
    ...(background && { background }),
  });
  const clock = now ?? (() => new Date());
  const keys = createKmsStore(store, clock);
  const cache = createKeyCache({ provider, keys });
  const { verifyAudit } = logVerification;
  const parts = {
    ...{ provider, store, keys, cache, users: undefined, now: clock, verifyAudit },
    certificateFiles: [],
  };
  const { server, url } = await serve(
    {
      services: [createServiceImplSpec<typeof KmsService>(KmsService, kmsService(parts))],
      access: { mode: auth, authenticate: async (authorization) => callerNamed(authorization) },
      ...explanations,
    },
    atEnd,
  );
  const { grpc, connect, disconnect } = openConnections(url);
  const stop = async (): Promise<void> => {
    disconnect();
    server.destroy();
    await server.close();
    await cache.close();
    await store.close();
    await provider.close();
  };
  return {
    ...putUnderTest({ url, location: database.location, stop }, atEnd),
    grpc,
    kms: createClient(KmsService, grpc),
    connect: createClient(KmsService, connect),
    store,
    database,
    ...createSchedule(parts),
  };
}

function callerNamed(authorization: string | null) {
  const subject = authorization?.replace("Bearer ", "") ?? "nobody";
  const role = authorization === null ? ("admin" as const) : ("user" as const);
  return { subject, role, issuedAt: new Date(0), expiresAt: new Date(0) };
}

/** Creates a key; ML-DSA-44 by default, because it is the fastest. */
export async function createKey(
  kms: KmsClient,
  fields: MessageInitShape<typeof CreateKeyRequestSchema> = {},
): Promise<KeyRecord> {
  return present((await kms.createKey({ algorithm: "ML-DSA-44", ...fields })).result);
}

/** Creates a key on a server. */
export async function withKey<Server extends KmsServer>(
  starting: Promise<Server>,
  fields: Parameters<typeof createKey>[1] = {},
): Promise<Server & { readonly key: KeyRecord; readonly keyId: string }> {
  const server = await starting;
  const key = await createKey(server.kms, fields);
  return { ...server, key, keyId: key.keyId };
}

/** Signs data, and returns the signature. */
export async function sign(
  kms: KmsClient,
  request: MessageInitShape<typeof SignRequestSchema>,
): Promise<Uint8Array> {
  return present((await kms.sign(request)).result).signature;
}

/** Wraps a key file for its import with a method, and imports it. */
export async function importFile(kms: KmsClient, file: Uint8Array, fields: object, method = "") {
  const parameters = await kms.getImportParameters({ algorithm: method });
  return present((await kms.importKey({ ...(await wrapKeyFile(parameters, file)), ...fields })).result);
}

/** A clock that stands still until a test moves it. */
export function createClock() {
  let nowMs = Date.parse("2026-11-23T10:00:00.000Z");
  return {
    now: () => new Date(nowMs),
    pass: (seconds: number): void => {
      nowMs += seconds * 1000;
    },
  };
}

/** Verifies a signature with only node:crypto and the PEM that the service returned. */
export function verifiesOutside(
  { publicKeyPem }: KeyRecord,
  data: Uint8Array,
  signature: Uint8Array,
  context?: Uint8Array,
): boolean {
  return outside.verifiesOutside(present(publicKeyPem), data, signature, context);
}

/**
 * Stops a server and returns its log, including counts of refusals; one line per entry, as in `readDeeds`.
 */
export async function closeAndReadDeeds({ close, tamper }: KmsServer): Promise<string[]> {
  await close();
  const rows = await tamper((db) => db.selectFrom("audit_entries").selectAll().orderBy("sequence").execute());
  return rows.map(describeDeed);
}

/** Reads what was done with a key, one line each: `SIGN OK input=data`. */
export async function readDeeds(kms: KmsClient, keyId = ""): Promise<string[]> {
  return (await readAudit(kms, keyId)).map(describeDeed);
}

type Deed = Pick<AuditEntry, "operation" | "outcome" | "details">;

function describeDeed({ operation, outcome, details }: Deed): string {
  return `${operation} ${outcome} ${details}`;
}
