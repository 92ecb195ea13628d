/** This extension's rows of the access table test. */
import { generateKeyPairSync } from "node:crypto";
import { type Client, createClient } from "@connectrpc/connect";
import { KeyManagementService } from "#gen/google/cloud/kms/v1/service_pb.ts";
import { Locations } from "#gen/google/cloud/location/locations_pb.ts";
import { type Records, type Row, row } from "../../../test/access/rpc-rows.ts";
import { present } from "../../../test/services/answers.ts";
import { bytesOf } from "../../../test/support/bytes.ts";
import { wrapKeyFile } from "../../../test/support/wrap-key.ts";
import { ImportMethod, Purpose, VersionAlgorithm, VersionState } from "./enums.ts";

const google = KeyManagementService.method;
const locations = Locations.method;
const data = bytesOf("hello");
const location = "projects/p/locations/global";
const importMethod = ImportMethod.HPKE_KEM_ML_KEM_768_HKDF_SHA256_AES_256_GCM;
const signingKey = {
  purpose: Purpose.ASYMMETRIC_SIGN,
  versionTemplate: { algorithm: VersionAlgorithm.PQ_SIGN_ML_DSA_44 },
};
const kemKey = {
  purpose: Purpose.KEY_ENCAPSULATION,
  versionTemplate: { algorithm: VersionAlgorithm.ML_KEM_768 },
};

/** Google's names belong to their owner; even administrators cannot see them. */
const hiddenAs = (hidden: string) => ({ hidden, isHiddenFromAdmins: true });
const ringHidden = hiddenAs("KEY_RING_NOT_FOUND");
const keyHidden = hiddenAs("KEY_NOT_FOUND");
const jobHidden = hiddenAs("IMPORT_JOB_NOT_FOUND");

/** The records' names and the owner's client. */
type Made = Readonly<Record<"ring" | "key" | "version" | "kemVersion" | "job", string>> & {
  readonly client: Client<typeof KeyManagementService>;
};

const known = new WeakMap<Records, Promise<Made>>();

/** Creates keys once for a test's records. */
function madeFor(records: Records): Promise<Made> {
  const made = known.get(records) ?? make(createClient(KeyManagementService, records.owner.transport));
  known.set(records, made);
  return made;
}

async function make(client: Made["client"]): Promise<Made> {
  const { name: ring } = await client.createKeyRing({ parent: location, keyRingId: "ring" });
  const create = async (cryptoKeyId: string, cryptoKey: typeof signingKey | typeof kemKey) =>
    (await client.createCryptoKey({ parent: ring, cryptoKeyId, cryptoKey })).name;
  const key = await create("key", signingKey);
  const kem = await create("kem", kemKey);
  const { name: job } = await client.createImportJob({
    parent: ring,
    importJobId: "job",
    importJob: { importMethod },
  });
  const [version, kemVersion] = [`${key}/cryptoKeyVersions/1`, `${kem}/cryptoKeyVersions/1`];
  return { client, ring, key, version, kemVersion, job };
}

async function createVersion({ client, key }: Made): Promise<{ readonly name: string }> {
  const { name } = await client.createCryptoKeyVersion({ parent: key });
  return { name };
}

let ids = 0;

function freshId(): string {
  ids += 1;
  return `fresh-${ids}`;
}

/** Adds the created records to a row's request. */
const using =
  <Request>(request: (made: Made) => Request | Promise<Request>) =>
  async (records: Records) =>
    request(await madeFor(records));

/** A request that only names a record. */
const named = <Field extends "name" | "parent">(field: Field, record: Exclude<keyof Made, "client">) =>
  using((made) => ({ [field]: made[record] }) as Record<Field, string>);

export const rows: readonly Row[] = [
  row(google.generateRandomBytes, () => ({ location, lengthBytes: 8 })),
  row(google.listKeyRings, () => ({ parent: location })),
  row(google.getKeyRing, named("name", "ring"), ringHidden),
  row(google.createKeyRing, () => ({ parent: location, keyRingId: freshId() })),
  row(google.listCryptoKeys, named("parent", "ring"), ringHidden),
  row(google.getCryptoKey, named("name", "key"), keyHidden),
  row(
    google.createCryptoKey,
    using(({ ring: parent }) => ({ parent, cryptoKeyId: freshId(), cryptoKey: signingKey })),
    ringHidden,
  ),
  row(
    google.updateCryptoKey,
    using(({ key: name }) => ({
      cryptoKey: { name, labels: { a: "b" } },
      updateMask: { paths: ["labels"] },
    })),
    keyHidden,
  ),
  row(google.listCryptoKeyVersions, named("parent", "key"), keyHidden),
  row(google.getCryptoKeyVersion, named("name", "version"), keyHidden),
  row(google.createCryptoKeyVersion, named("parent", "key"), keyHidden),
  row(
    google.updateCryptoKeyVersion,
    using(({ version: name }) => ({
      cryptoKeyVersion: { name, state: VersionState.ENABLED },
      updateMask: { paths: ["state"] },
    })),
    keyHidden,
  ),
  row(google.destroyCryptoKeyVersion, using(createVersion), keyHidden),
  row(
    google.restoreCryptoKeyVersion,
    using(async (made) => {
      const version = await createVersion(made);
      await made.client.destroyCryptoKeyVersion(version);
      return version;
    }),
    keyHidden,
  ),
  row(google.getPublicKey, named("name", "version"), keyHidden),
  row(
    google.asymmetricSign,
    using(({ version: name }) => ({ name, data })),
    keyHidden,
  ),
  row(
    google.decapsulate,
    using(({ kemVersion: name }) => ({ name, ciphertext: new Uint8Array(1088) })),
    keyHidden,
  ),
  row(google.listImportJobs, named("parent", "ring"), ringHidden),
  row(google.getImportJob, named("name", "job"), jobHidden),
  row(
    google.createImportJob,
    using(({ ring: parent }) => ({ parent, importJobId: freshId(), importJob: { importMethod } })),
    ringHidden,
  ),
  row(
    google.importCryptoKeyVersion,
    using(async ({ client, key: parent, job: importJob }) => {
      const { publicKey } = await client.getImportJob({ name: importJob });
      const file = generateKeyPairSync("ml-dsa-44").privateKey.export({ format: "der", type: "pkcs8" });
      const parameters = {
        publicKey: present(publicKey).data,
        importToken: "",
        algorithm: "HPKE_ML_KEM_768_HKDF_SHA256_AES_256_GCM",
      };
      const { wrappedKey } = await wrapKeyFile(parameters, file);
      const algorithm = VersionAlgorithm.PQ_SIGN_ML_DSA_44;
      return { parent, algorithm, importJob, wrappedKey };
    }),
    keyHidden,
  ),
  row(locations.listLocations, () => ({})),
  row(locations.getLocation, () => ({ name: "locations/global" })),
];
