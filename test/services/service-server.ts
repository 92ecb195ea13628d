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
    const { grpc, disconnect } = openConnections(app.url);
    const stop = async (): Promise<void> => {
      disconnect();
      app.server.destroy();
      await app.close();
    };
    return {
      ...putUnderTest({ url: app.url, location: storeSettings(config).location, stop }, place.atEnd),
      authority: new URL(app.url).host,
      client: createClient(service, grpc),
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
