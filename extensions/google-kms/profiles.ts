/** Facts that Google's protos do not state: who may call, and which calls this server implements. */
import { Access } from "#gen/qsp/access_pb.ts";
import type { RpcProfile, ServiceProfiles } from "../../src/calls/service-profile.ts";
import { declaredReasons } from "./reasons.ts";

/** An implemented call, open to every user; an access token needs the scope. */
function supported(scope: string, comment: string, reasons: readonly string[] = []): RpcProfile {
  return { access: Access.AUTHENTICATED, scope, comment, reasons };
}

/** A call that fails with CALL_UNSUPPORTED after authentication. */
const unsupported: RpcProfile = { access: Access.AUTHENTICATED, scope: "kms.admin" };

/** By full service name. A call without a row stops the server from starting. */
export const googleProfiles: ServiceProfiles = {
  "google.cloud.kms.v1.KeyManagementService": {
    restStyle: "google",
    comment:
      "Google's Cloud KMS API, for programs that use Google's clients. Calls that are not listed fail with CALL_UNSUPPORTED.",
    reasons: declaredReasons,
    rpcs: {
      ListKeyRings: supported("kms.read", "Lists a location's key rings."),
      GetKeyRing: supported("kms.read", "Returns a key ring.", ["KEY_RING_NOT_FOUND"]),
      CreateKeyRing: supported(
        "kms.admin",
        "Creates a key ring: a prefix of key names, which cannot be deleted.",
        ["KEY_RING_TAKEN", "QUOTA_EXCEEDED"],
      ),

      ListCryptoKeys: supported("kms.read", "Lists a key ring's keys.", ["KEY_RING_NOT_FOUND"]),
      GetCryptoKey: supported(
        "kms.read",
        "Returns a key. Each key is a name in the key service, such as name/projects/P/locations/L/keyRings/R/cryptoKeys/K.",
        ["KEY_NOT_FOUND"],
      ),
      CreateCryptoKey: supported(
        "kms.admin",
        "Creates a key with its first version, for signing (ASYMMETRIC_SIGN) or decapsulation (KEY_ENCAPSULATION).",
        ["KEY_RING_NOT_FOUND", "NAME_TAKEN", "QUOTA_EXCEEDED"],
      ),
      UpdateCryptoKey: supported("kms.admin", "Replaces a key's labels.", ["KEY_NOT_FOUND"]),

      ListCryptoKeyVersions: supported("kms.read", "Lists a key's versions.", ["KEY_NOT_FOUND"]),
      GetCryptoKeyVersion: supported("kms.read", "Returns a key version.", ["KEY_NOT_FOUND", "KEY_DAMAGED"]),
      CreateCryptoKeyVersion: supported(
        "kms.admin",
        "Adds a version to a key. Earlier versions stay ENABLED.",
        ["KEY_NOT_FOUND", "QUOTA_EXCEEDED"],
      ),
      UpdateCryptoKeyVersion: supported("kms.admin", "Enables or disables a version.", [
        "KEY_NOT_FOUND",
        "KEY_STATE_INVALID",
        "KEY_DAMAGED",
      ]),
      DestroyCryptoKeyVersion: supported(
        "kms.admin",
        "Schedules a version's destruction after the delay set on its key, 30 days by default.",
        ["KEY_NOT_FOUND", "KEY_STATE_INVALID", "KEY_DAMAGED"],
      ),
      RestoreCryptoKeyVersion: supported(
        "kms.admin",
        "Cancels a scheduled destruction. The version becomes DISABLED.",
        ["KEY_NOT_FOUND", "KEY_STATE_INVALID", "KEY_DAMAGED"],
      ),
      GetPublicKey: supported(
        "kms.read",
        "Returns an ENABLED version's public key: PEM, DER, or the standard's raw encoding.",
        ["KEY_NOT_FOUND", "KEY_STATE_INVALID", "KEY_DAMAGED"],
      ),

      AsymmetricSign: supported(
        "kms.sign",
        "Signs data, an external mu (FIPS 204) or, with EC_SIGN_P256_SHA256, a digest.",
        [
          "KEY_NOT_FOUND",
          "KEY_STATE_INVALID",
          "KEY_USAGE_MISMATCH",
          "KEY_DAMAGED",
          "LENGTH_INVALID",
          "CHECKSUM_MISMATCH",
        ],
      ),
      Decapsulate: supported("kms.decapsulate", "Recovers the shared secret from a ciphertext.", [
        "KEY_NOT_FOUND",
        "KEY_STATE_INVALID",
        "KEY_USAGE_MISMATCH",
        "KEY_DAMAGED",
        "LENGTH_INVALID",
        "CHECKSUM_MISMATCH",
      ]),
      GenerateRandomBytes: supported(
        "kms.read",
        "Generates 8 to 1024 random bytes, with their CRC32C. All protection levels use the server's own " +
          "random generator.",
      ),

      ListImportJobs: supported("kms.read", "Lists a key ring's import jobs.", ["KEY_RING_NOT_FOUND"]),
      GetImportJob: supported("kms.read", "Returns an import job with its public key.", [
        "IMPORT_JOB_NOT_FOUND",
      ]),
      CreateImportJob: supported(
        "kms.admin",
        "Creates an import job with a fresh HPKE public key. It expires after 24 hours.",
        ["KEY_RING_NOT_FOUND", "IMPORT_JOB_TAKEN", "QUOTA_EXCEEDED"],
      ),
      ImportCryptoKeyVersion: supported(
        "kms.admin",
        "Imports a wrapped key as a new key version, through an unexpired import job.",
        ["KEY_NOT_FOUND", "IMPORT_JOB_NOT_FOUND", "IMPORT_TOKEN_INVALID", "KEY_INVALID", "QUOTA_EXCEEDED"],
      ),

      // The server has no symmetric or MAC keys, no RSA decryption, and no keys wrapped by other keys.
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

      // Versions can be destroyed, but key names stay taken.
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
    comment: "Google's Locations API, part of every Google service.",
    rpcs: {
      ListLocations: supported("kms.read", "Lists this server's only location, global."),
      GetLocation: supported(
        "kms.read",
        "Returns a location. Every well-formed location exists, because a location is only part of a name here.",
      ),
    },
  },
};
