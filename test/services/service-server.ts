/** Starts one service, or the whole app, on either database. */
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { type Config, readConfig } from "../../src/config.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { openStore } from "../support/open-store.ts";
import {
  describeOnSqlite,
  describeTwoOnOne,
  type Given,
  type ServerUnderTest,
  type StartIn,
  type StartTwo,
  startUnderTest,
  type TestDatabase,
  useLate,
} from "./app-under-test.ts";

/** A running server. */
export interface Served extends ServerUnderTest {
  readonly grpc: Transport;
  /** "127.0.0.1:port". */
  readonly authority: string;
  readonly database: TestDatabase;
  readonly config: Config;
}

/** A server that serves one package, with a client over gRPC. */
export type ServiceServer<Service extends DescService> = Served & { readonly client: Client<Service> };

/** Describes tests on SQLite that use servers of one service: see `describeOnSqlite`. */
export function describeService<Service extends DescService>(
  name: string,
  service: Service,
  define: (given: Given<TestDatabase, ServiceServer<Service>, { readonly client: Client<Service> }>) => void,
): void {
  describeOnSqlite(name, startOf(service), (start, shared) => {
    const late = useLate(shared);
    define({ start, shared, ...late, client: createClient(service, late.grpc) });
  });
}

/** Describes tests of replicas: see `describeTwoOnOne`. */
export function describeReplicas<Service extends DescService>(
  name: string,
  service: Service,
  define: (startTwo: StartTwo<ServiceServer<Service>>) => void,
): void {
  describeTwoOnOne(name, startOf(service), define);
}

function startOf<Service extends DescService>(service: Service) {
  const packageName = service.typeName.split(".")[0] ?? "";
  return startWith((grpc) => ({ client: createClient(service, grpc) }), ["--services", packageName]);
}

/** Returns a function that starts servers with clients over gRPC. */
export function startWith<Clients>(
  connect: (grpc: Transport) => Clients,
  flags: readonly string[] = [],
): StartIn<TestDatabase, Served & Clients> {
  return async (place, given) => {
    const database = given ?? (await place.database());
    const config = readConfig(["--port", "0", ...flags, ...database], {});
    const underTest = await startUnderTest(config, place.atEnd);
    const authority = new URL(underTest.url).host;
    return { ...connect(underTest.grpc), ...underTest, authority, database, config };
  };
}

/** Opens a secret in a database that no server has open, as anyone with its master key can. */
export async function readSecret({ config }: Served, identity: string): Promise<Uint8Array | undefined> {
  const provider = await createCryptoProvider("openssl");
  const store = await openStore({ ...storeSettings(config), provider });
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
