/** Starts one service in the whole app, on either database. */
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { readConfig } from "../../src/config.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { openStore } from "../support/open-store.ts";
import {
  describeOnSqlite,
  describeTwoOnOne,
  openConnections,
  putUnderTest,
  type ServerUnderTest,
  type Shared,
  type Start,
  type StartIn,
  type StartTwo,
  serveApp,
  type TestDatabase,
} from "./app-under-test.ts";

/** A server that serves one package. */
export interface ServiceServer<Service extends DescService> extends ServerUnderTest {
  /** "127.0.0.1:port". */
  readonly authority: string;
  /** Over gRPC. */
  readonly client: Client<Service>;
  /** Over Connect and HTTP/1.1. */
  readonly connect: Client<Service>;
  readonly database: TestDatabase;
}

/** Describes tests that use servers of one service. */
type DescribeService = <Service extends DescService>(
  name: string,
  service: Service,
  define: (
    start: Start<TestDatabase, ServiceServer<Service>>,
    shared: Shared<ServiceServer<Service>>,
  ) => void,
) => void;

/** Describes tests on SQLite: see `describeOnSqlite`. */
export const describeService: DescribeService = (name, service, define) =>
  describeOnSqlite(name, startOf(service), define);

/** Describes tests of replicas: see `describeTwoOnOne`. */
export function describeReplicas<Service extends DescService>(
  name: string,
  service: Service,
  define: (startTwo: StartTwo<ServiceServer<Service>>) => void,
): void {
  describeTwoOnOne(name, startOf(service), define);
}

function startOf<Service extends DescService>(
  service: Service,
): StartIn<TestDatabase, ServiceServer<Service>> {
  const packageName = service.typeName.split(".")[0] ?? "";
  return async (place, given) => {
    const database = given ?? (await place.database());
    const config = readConfig(["--port", "0", "--services", packageName, ...database], {});
    const app = await serveApp(config);
    const { grpc, connect, disconnect } = openConnections(app.url);
    const stop = async (): Promise<void> => {
      disconnect();
      app.server.destroy();
      await app.close();
    };
    return {
      ...putUnderTest({ url: app.url, location: storeSettings(config).location, stop }, place.atEnd),
      authority: new URL(app.url).host,
      client: createClient(service, grpc),
      connect: createClient(service, connect),
      database,
    };
  };
}

/** Opens a secret in a database that no server has open, as anyone with its master key can. */
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

/** Returns call options with a fresh Idempotency-Key. */
export function freshOrder(): { headers: { "idempotency-key": string } } {
  names += 1;
  return { headers: { "idempotency-key": `order ${names}` } };
}

/**
 * Repeats a call under one Idempotency-Key: twice, and 20 times concurrently under a second key; returns the
 * number of distinct answers.
 */
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
