/** Servers with the google.kms services, one per group of tests. */
import { type Client, createClient } from "@connectrpc/connect";
import { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import { storeSettings } from "../../../src/settings/store-settings.ts";
import {
  describeOnSqlite,
  openConnections,
  type Place,
  putUnderTest,
  type ServerUnderTest,
  type Shared,
  serveApp,
} from "../../../test/services/app-under-test.ts";

export type GoogleKms = Client<typeof KeyManagementService>;

/** A server with Google's service and the key service. */
export interface GoogleServer extends ServerUnderTest {
  readonly google: GoogleKms;
  readonly kms: Client<typeof KmsService>;
}

/** Describes tests that share one server. */
export function describeGoogle(name: string, define: (shared: Shared<GoogleServer>) => void): void {
  describeOnSqlite(name, startIn, (_start, shared) => define(shared));
}

async function startIn(place: Place): Promise<GoogleServer> {
  const config = readConfig([...(await place.database()), "--port", "0", "--services", "kms,google.kms"], {});
  const { url, server, close } = await serveApp(config);
  const { grpc, disconnect } = openConnections(url);
  const stop = async (): Promise<void> => {
    disconnect();
    server.destroy();
    await close();
  };
  const underTest = putUnderTest({ url, location: storeSettings(config).location, stop }, place.atEnd);
  return {
    ...underTest,
    google: createClient(KeyManagementService, grpc),
    kms: createClient(KmsService, grpc),
  };
}
