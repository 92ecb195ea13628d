/** Facts that Google's protos do not state: who may call, and which calls this server has. */
import { Access } from "#gen/qsp/access_pb.ts";
import type { RpcProfile, ServiceProfiles } from "../../src/calls/service-profile.ts";
import { declaredReasons } from "./reasons.ts";

/** A call of this server, for every user; an access token needs the scope. */
function supported(scope: string, comment: string, reasons: readonly string[] = []): RpcProfile {
  return { access: Access.AUTHENTICATED, scope, comment, reasons };
}

/** A call that is refused with CALL_UNSUPPORTED, after its caller has shown a token. */
const unsupported: RpcProfile = { access: Access.AUTHENTICATED, scope: "kms.admin" };

/** By the full names of the services. A call without a row keeps the server from starting. */
export const googleProfiles: ServiceProfiles = {
  "google.cloud.kms.v1.KeyManagementService": {
    restStyle: "google",
    comment:
      "Google's Cloud KMS API, for programs that use Google's clients. Calls that are not listed fail with CALL_UNSUPPORTED.",
    reasons: declaredReasons,
    rpcs: {
      ListKeyRings: supported("kms.read", "Lists the key rings of a location."),
      GetKeyRing: supported("kms.read", "Returns a key ring.", ["KEY_RING_NOT_FOUND"]),
      CreateKeyRing: supported(
        "kms.admin",
        "Creates a key ring. It is a prefix of names of keys, and stays forever.",
        ["KEY_RING_TAKEN", "QUOTA_EXCEEDED"],
      ),

      ListCryptoKeys: supported("kms.read", "Lists the keys of a key ring.", ["KEY_RING_NOT_FOUND"]),
      GetCryptoKey: supported(
        "kms.read",
        "Returns a key. A key is a name of the key service, such as name/projects/P/locations/L/keyRings/R/cryptoKeys/K.",
        ["KEY_NOT_FOUND"],
      ),
      CreateCryptoKey: supported(
        "kms.admin",
        "Creates a key and its first version, to sign (ASYMMETRIC_SIGN) or to decapsulate (KEY_ENCAPSULATION).",
        ["KEY_RING_NOT_FOUND", "NAME_TAKEN", "QUOTA_EXCEEDED"],
      ),
      UpdateCryptoKey: supported("kms.admin", "Replaces the labels of a key.", ["KEY_NOT_FOUND"]),

      ListCryptoKeyVersions: supported("kms.read", "Lists the versions of a key.", ["KEY_NOT_FOUND"]),
      GetCryptoKeyVersion: supported("kms.read", "Returns a version of a key.", [
        "KEY_NOT_FOUND",
        "GRANT_MISSING",
        "KEY_DAMAGED",
      ]),
      CreateCryptoKeyVersion: supported(
        "kms.admin",
        "Adds a version to a key. The versions before it stay ENABLED.",
        ["KEY_NOT_FOUND", "QUOTA_EXCEEDED"],
      ),
      UpdateCryptoKeyVersion: supported("kms.admin", "Enables or disables a version.", [
        "KEY_NOT_FOUND",
        "KEY_STATE_INVALID",
        "KEY_DAMAGED",
      ]),
      DestroyCryptoKeyVersion: supported(
        "kms.admin",
        "Schedules the destruction of a version, after the time that its key sets; 30 days if it sets none.",
        ["KEY_NOT_FOUND", "KEY_STATE_INVALID", "KEY_DAMAGED"],
      ),
      RestoreCryptoKeyVersion: supported(
        "kms.admin",
        "Takes back a scheduled destruction. The version becomes DISABLED.",
        ["KEY_NOT_FOUND", "KEY_STATE_INVALID", "KEY_DAMAGED"],
      ),
      GetPublicKey: supported(
        "kms.read",
        "Returns the public key of an ENABLED version: PEM, DER, or the bytes of its standard.",
        ["KEY_NOT_FOUND", "KEY_STATE_INVALID", "KEY_DAMAGED"],
      ),

      AsymmetricSign: supported(
        "kms.sign",
        "Signs data, an external mu (FIPS 204), or for EC_SIGN_P256_SHA256 a digest.",
        [
          "KEY_NOT_FOUND",
          "KEY_STATE_INVALID",
          "KEY_USAGE_MISMATCH",
          "KEY_DAMAGED",
          "LENGTH_INVALID",
          "CHECKSUM_MISMATCH",
        ],
      ),
      Decapsulate: supported("kms.decapsulate", "Recovers the shared secret of a ciphertext.", [
        "KEY_NOT_FOUND",
        "KEY_STATE_INVALID",
        "KEY_USAGE_MISMATCH",
        "KEY_DAMAGED",
        "LENGTH_INVALID",
        "CHECKSUM_MISMATCH",
      ]),
      GenerateRandomBytes: supported(
        "kms.read",
        "Generates 8 to 1024 random bytes, with their CRC32C. Any protection level gives bytes of the server's own " +
          "random generator.",
      ),

      ListImportJobs: supported("kms.read", "Lists the import jobs of a key ring.", ["KEY_RING_NOT_FOUND"]),
      GetImportJob: supported("kms.read", "Returns an import job with its public key.", [
        "IMPORT_JOB_NOT_FOUND",
      ]),
      CreateImportJob: supported(
        "kms.admin",
        "Creates an import job with a fresh public key for HPKE. It expires after 24 hours.",
        ["KEY_RING_NOT_FOUND", "IMPORT_JOB_TAKEN", "QUOTA_EXCEEDED"],
      ),
      ImportCryptoKeyVersion: supported(
        "kms.admin",
        "Imports a wrapped key as a new version of a key, with an import job that has not expired.",
        ["KEY_NOT_FOUND", "IMPORT_JOB_NOT_FOUND", "IMPORT_TOKEN_INVALID", "KEY_INVALID", "QUOTA_EXCEEDED"],
      ),

      // Symmetric and MAC keys, RSA decryption, and keys that other keys wrap: this server has none of them.
      UpdateCryptoKeyPrimaryVersion: unsupported,
      Encrypt: unsupported,
      Decrypt: unsupported,
      RawEncrypt: unsupported,
      RawDecrypt: unsupported,
      AsymmetricDecrypt: unsupported,
      MacSign: unsupported,
      MacVerify: unsupported,
      ImportTrustedKeyWrappedCryptoKeyVersion: unsupported,
      ExportTrustedKeyWrappedCryptoKeyVersion: unsupported,

      // Versions are destroyed, but the names of keys stay taken.
      DeleteCryptoKey: unsupported,
      DeleteCryptoKeyVersion: unsupported,
      ListRetiredResources: unsupported,
      GetRetiredResource: unsupported,
    },
    absent: {
      "google.cloud.kms.v1.Autokey": /^\/v1\/projects\/[^/]+\/locations\/[^/]+\/keyHandles(\/|$)/,
      "google.cloud.kms.v1.AutokeyAdmin":
        /^\/v1\/((folders|projects)\/[^/]+\/autokeyConfig|projects\/[^/]+:showEffectiveAutokeyConfig)$/,
      "google.cloud.kms.v1.EkmService":
        /^\/v1\/projects\/[^/]+\/locations\/[^/]+\/(ekmConnections(\/|$)|ekmConfig$)/,
      "google.cloud.kms.v1.HsmManagement":
        /^\/v1\/projects\/[^/]+\/locations\/[^/]+\/singleTenantHsmInstances(\/|$)/,
      "google.iam.v1.IAMPolicy":
        /^\/v1\/projects\/[^/]+\/locations\/[^/]+\/.+:(getIamPolicy|setIamPolicy|testIamPermissions)$/,
    },
  },
  "google.cloud.location.Locations": {
    restStyle: "google",
    comment: "Google's Locations API, which belongs to each of Google's services.",
    rpcs: {
      ListLocations: supported("kms.read", "Lists the one location that this server names itself, global."),
      GetLocation: supported(
        "kms.read",
        "Returns a location. Every well-formed location exists, because a location is only a part of names here.",
      ),
    },
  },
};
