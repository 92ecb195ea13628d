import { answered, example, someBytes, withAnswers } from "../../src/calls/example.ts";
import answers from "./answers.json" with { type: "json" };

const service = "google.cloud.kms.v1.KeyManagementService";
const locations = "google.cloud.location.Locations";
const location = "projects/demo/locations/global";
const ring = `${location}/keyRings/release`;
const key = `${ring}/cryptoKeys/signer`;
const version = `${key}/cryptoKeyVersions/1`;
const kem = `${ring}/cryptoKeys/inbox`;
const job = `${ring}/importJobs/import`;
/** Any 1,088 bytes decapsulate to some secret (FIPS 203, section 7.3). */
const ciphertext = Buffer.alloc(1088, "ciphertext ").toString("base64");

/** A placeholder for the key that the caller wraps for `google-create-import-job`; no call returns it. */
export const googleWrappedKey = "google-wrapped-key";

/** Example requests for each call, in an order in which they work. */
export const examples = withAnswers(
  [
    example(`${locations}.ListLocations`, "google-list-locations", "Lists the locations."),
    example(`${locations}.GetLocation`, "google-get-location", "Returns a location.", {
      name: "locations/global",
    }),
    example(`${service}.GenerateRandomBytes`, "google-generate-random-bytes", "Generates 32 random bytes.", {
      location,
      lengthBytes: 32,
      protectionLevel: "HSM",
    }),
    example(`${service}.CreateKeyRing`, "google-create-key-ring", "Creates a key ring.", {
      parent: location,
      keyRingId: "release",
      keyRing: {},
    }),
    example(`${service}.ListKeyRings`, "google-list-key-rings", "Lists the key rings.", { parent: location }),
    example(`${service}.GetKeyRing`, "google-get-key-ring", "Returns a key ring.", { name: ring }),
    example(`${service}.CreateCryptoKey`, "google-create-crypto-key", "Creates a signing key.", {
      parent: ring,
      cryptoKeyId: "signer",
      cryptoKey: {
        purpose: "ASYMMETRIC_SIGN",
        versionTemplate: { algorithm: "PQ_SIGN_ML_DSA_65" },
        labels: { team: "release" },
      },
    }),
    example(`${service}.CreateCryptoKey`, "google-create-kem-key", "Creates a decapsulation key.", {
      parent: ring,
      cryptoKeyId: "inbox",
      cryptoKey: { purpose: "KEY_ENCAPSULATION", versionTemplate: { algorithm: "ML_KEM_768" } },
    }),
    example(`${service}.ListCryptoKeys`, "google-list-crypto-keys", "Lists the keys.", { parent: ring }),
    example(`${service}.GetCryptoKey`, "google-get-crypto-key", "Returns a key.", { name: key }),
    example(`${service}.UpdateCryptoKey`, "google-update-crypto-key", "Changes a key's labels.", {
      cryptoKey: { name: key, labels: { team: "build" } },
      updateMask: "labels",
    }),
    example(`${service}.GetPublicKey`, "google-get-public-key", "Returns a public key in PEM.", {
      name: version,
      publicKeyFormat: "PEM",
    }),
    example(`${service}.AsymmetricSign`, "google-asymmetric-sign", "Signs a release.", {
      name: version,
      data: "cmVsZWFzZSAxLjIuMw==",
    }),
    example(`${service}.Decapsulate`, "google-decapsulate", "Recovers a shared secret.", {
      name: `${kem}/cryptoKeyVersions/1`,
      ciphertext,
    }),
    example(`${service}.CreateCryptoKeyVersion`, "google-create-version", "Adds a version.", {
      parent: key,
      cryptoKeyVersion: {},
    }),
    example(`${service}.ListCryptoKeyVersions`, "google-list-versions", "Lists a key's versions.", {
      parent: key,
    }),
    example(`${service}.GetCryptoKeyVersion`, "google-get-version", "Returns a version.", { name: version }),
    example(`${service}.UpdateCryptoKeyVersion`, "google-disable-version", "Disables a version.", {
      cryptoKeyVersion: { name: version, state: "DISABLED" },
      updateMask: "state",
    }),
    example(
      `${service}.DestroyCryptoKeyVersion`,
      "google-destroy-version",
      "Schedules a version's destruction in 30 days.",
      {
        name: version,
      },
    ),
    example(`${service}.RestoreCryptoKeyVersion`, "google-restore-version", "Cancels the destruction.", {
      name: version,
    }),
    example(`${service}.CreateImportJob`, "google-create-import-job", "Creates an import job.", {
      parent: ring,
      importJobId: "import",
      importJob: { importMethod: "HPKE_KEM_XWING_HKDF_SHA256_AES_256_GCM", protectionLevel: "SOFTWARE" },
    }),
    example(`${service}.ListImportJobs`, "google-list-import-jobs", "Lists the import jobs.", {
      parent: ring,
    }),
    example(`${service}.GetImportJob`, "google-get-import-job", "Returns an import job.", { name: job }),
    example(`${service}.ImportCryptoKeyVersion`, "google-import-version", "Imports a key version.", {
      parent: key,
      algorithm: "PQ_SIGN_ML_DSA_65",
      importJob: job,
      wrappedKey: answered(googleWrappedKey, "wrappedKey", someBytes),
    }),
  ],
  answers,
);
