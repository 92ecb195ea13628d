/** Servers with the google.kms services, one per group of tests. */
import { type Client, createClient } from "@connectrpc/connect";
import { beforeAll } from "vitest";
import { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import {
  describeOnSqlite,
  type Place,
  type ServerUnderTest,
  type Shared,
  startUnderTest,
} from "../../../test/services/app-under-test.ts";
import { ImportMethod, Purpose, VersionAlgorithm } from "./enums.ts";

type GoogleKms = Client<typeof KeyManagementService>;

/** A server with Google's service and the key service. */
interface GoogleServer extends ServerUnderTest {
  readonly google: GoogleKms;
  readonly kms: Client<typeof KmsService>;
}

/** The clients of the server whose tests are running. */
export let google: GoogleKms;
export let kms: GoogleServer["kms"];

/** Describes tests that share one server. */
export function describeGoogle(name: string, define: (shared: Shared<GoogleServer>) => void): void {
  describeOnSqlite(name, startIn, (_start, shared) => {
    beforeAll(async () => {
      ({ google, kms } = await shared());
    });
    define(shared);
  });
}

async function startIn(place: Place): Promise<GoogleServer> {
  const config = readConfig([...(await place.database()), "--port", "0", "--services", "kms,google.kms"], {});
  const { grpc, ...underTest } = await startUnderTest(config, place.atEnd);
  return {
    ...underTest,
    google: createClient(KeyManagementService, grpc),
    kms: createClient(KmsService, grpc),
  };
}

let count = 0;

/** Creates a location with its own rings. */
export async function createLocation(...rings: string[]): Promise<string> {
  count += 1;
  const parent = `projects/p${count}/locations/global`;
  for (const keyRingId of rings) await google.createKeyRing({ parent, keyRingId });
  return parent;
}

export async function createRing(): Promise<string> {
  return `${await createLocation("ring")}/keyRings/ring`;
}

export const kem = {
  purpose: Purpose.KEY_ENCAPSULATION,
  versionTemplate: { algorithm: VersionAlgorithm.ML_KEM_768 },
};

/** Creates a decapsulation key. */
export async function createKey(fields: object = {}): Promise<string> {
  const parent = await createRing();
  const key = { parent, cryptoKeyId: "key", cryptoKey: { ...kem, ...fields } };
  return (await google.createCryptoKey(key)).name;
}

export function createJob(parent: string, importJobId = "job") {
  const importJob = { importMethod: ImportMethod.HPKE_KEM_XWING_HKDF_SHA256_AES_256_GCM };
  return google.createImportJob({ parent, importJobId, importJob });
}

/** The last parts of names. */
export const idsOf = (records: readonly { readonly name: string }[]): string[] =>
  records.map(({ name }) => name.split("/").at(-1) ?? "");
