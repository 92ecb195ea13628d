/** Servers with the google.kms services, one per group of tests. */
import { type Client, createClient } from "@connectrpc/connect";
import {
  ImportJob_ImportMethod as ImportMethod,
  CryptoKey_CryptoKeyPurpose as Purpose,
  CryptoKeyVersion_CryptoKeyVersionAlgorithm as VersionAlgorithm,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
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

let count = 0;

/** Creates a location with its own rings. */
export async function createLocation(google: GoogleKms, ...rings: string[]): Promise<string> {
  count += 1;
  const parent = `projects/p${count}/locations/global`;
  for (const keyRingId of rings) await google.createKeyRing({ parent, keyRingId });
  return parent;
}

export async function createRing(google: GoogleKms): Promise<string> {
  return `${await createLocation(google, "ring")}/keyRings/ring`;
}

export const kem = {
  purpose: Purpose.KEY_ENCAPSULATION,
  versionTemplate: { algorithm: VersionAlgorithm.ML_KEM_768 },
};

/** Creates a decapsulation key. */
export async function createKey(google: GoogleKms, fields: object = {}): Promise<string> {
  const parent = await createRing(google);
  const key = { parent, cryptoKeyId: "key", cryptoKey: { ...kem, ...fields } };
  return (await google.createCryptoKey(key)).name;
}

export function createJob(google: GoogleKms, parent: string, importJobId = "job") {
  const importJob = { importMethod: ImportMethod.HPKE_KEM_XWING_HKDF_SHA256_AES_256_GCM };
  return google.createImportJob({ parent, importJobId, importJob });
}

/** The last parts of names. */
export const idsOf = (records: readonly { readonly name: string }[]): string[] =>
  records.map(({ name }) => name.split("/").at(-1) ?? "");
